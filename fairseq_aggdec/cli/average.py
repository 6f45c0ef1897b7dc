"""`aggdec-average DIR --last N --output FILE`: the mean of a training run's last checkpoints, without optimizer."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from fairseq_aggdec.compat import read_checkpoint
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import written_whole


def last_checkpoints(folder: Path, number: int) -> list[Path]:
    """Returns the `number` latest `checkpoint_EPOCH_UPDATE.pt` files (else `checkpointEPOCH.pt`), the latest last.

    Raises:
        AggdecError: the folder holds fewer.
    """
    found = []
    for path in folder.glob("checkpoint*.pt"):
        match = re.fullmatch(r"checkpoint(?:_\d+_|)(\d+)", path.stem)
        if match:
            found.append((int(match.group(1)), path))
    if len(found) < number:
        raise AggdecError(f"{folder} holds {len(found)} numbered checkpoints, fewer than the {number} asked for")
    return [path for _, path in sorted(found)[-number:]]


def average_checkpoints(paths: Sequence[Path]) -> dict[str, Any]:
    """Returns the last checkpoint with the mean of all the checkpoints' weights, and without its training state.

    Means are taken in double precision and stored in the type of the last checkpoint's weights, bfloat16 widened to
    float32 so that any machine can run them. Integers are not averaged: a single number, such as a count of updates,
    is that of the last checkpoint, and tensors of integers, such as a fingerprint, must be equal in all.

    Raises:
        AggdecError: the checkpoints have different parameters, or different tensors of integers.
    """
    total: dict[str, torch.Tensor] = {}
    state: dict[str, Any] = {}
    for path in tqdm(paths, desc="average", unit=" checkpoints"):
        state = read_checkpoint(path)
        weights = state["model"]
        if total and weights.keys() != total.keys():
            raise AggdecError(f"{path} has other parameters than {paths[0]}: average checkpoints of one training run")
        for name, value in weights.items():
            if value.is_floating_point():
                total[name] = total[name] + value.double() if name in total else value.double()
            elif name in total and value.dim() > 0 and not value.equal(total[name]):
                raise AggdecError(
                    f"{path}: `{name}` differs from that of {paths[0]} and cannot be averaged, as it holds integers: "
                    "average checkpoints of one training run"
                )
            else:
                total[name] = value
    mean = {}
    for name, value in state["model"].items():
        if value.is_floating_point():
            dtype = torch.float32 if value.dtype == torch.bfloat16 else value.dtype
            mean[name] = (total[name] / len(paths)).to(dtype)
        else:
            mean[name] = value
    return {**state, "model": mean, "last_optimizer_state": None, "optimizer_history": state["optimizer_history"][-1:]}


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Averages and saves; see --help.

    Raises:
        AggdecError: there are too few checkpoints, or they cannot be averaged.
    """
    parser = argparse.ArgumentParser(prog="aggdec-average", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the checkpoints of one training run")
    parser.add_argument("--last", type=int, default=5, help="number of checkpoints, the latest ones (default: 5)")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    if args.last < 1:
        parser.error(f"--last {args.last}: must be at least 1")
    paths = last_checkpoints(args.folder, args.last)
    state = average_checkpoints(paths)
    with written_whole(args.output) as partial:
        torch.save(state, partial)
    print(f"mean of {', '.join(path.name for path in paths)} in {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
