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


def last_checkpoints(folder: Path, number: int) -> list[Path]:
    """Returns the `number` latest `checkpoint_EPOCH_UPDATE.pt` files (else `checkpointEPOCH.pt`), the latest last.

    Raises:
        ValueError: the folder holds fewer.
    """
    found = []
    for path in folder.glob("checkpoint*.pt"):
        match = re.fullmatch(r"checkpoint(?:_\d+_|)(\d+)", path.stem)
        if match:
            found.append((int(match.group(1)), path))
    if len(found) < number:
        raise ValueError(f"{folder} holds {len(found)} numbered checkpoints, fewer than the {number} asked for")
    return [path for _, path in sorted(found)[-number:]]


def average_checkpoints(paths: Sequence[Path]) -> dict[str, Any]:
    """Returns the last checkpoint with the mean of all the checkpoints' weights, and without its training state.

    Means are taken in double precision and stored in the type of the last checkpoint's weights, bfloat16 widened to
    float32 so that any machine can run them.

    Raises:
        ValueError: the checkpoints have different parameters.
    """
    total: dict[str, torch.Tensor] = {}
    state: dict[str, Any] = {}
    for path in tqdm(paths, desc="average", unit=" checkpoints"):
        state = read_checkpoint(path)
        weights = state["model"]
        if total and weights.keys() != total.keys():
            raise ValueError(f"{path} has other parameters than {paths[0]}: average checkpoints of one training run")
        for name, value in weights.items():
            total[name] = total[name] + value.double() if name in total else value.double()
    mean = {}
    for name, value in state["model"].items():
        dtype = torch.float32 if value.dtype == torch.bfloat16 else value.dtype
        mean[name] = (total[name] / len(paths)).to(dtype)
    return {**state, "model": mean, "last_optimizer_state": None, "optimizer_history": state["optimizer_history"][-1:]}


def main(argv: Sequence[str] | None = None) -> int:
    """Averages and saves; returns the exit status."""
    parser = argparse.ArgumentParser(prog="aggdec-average", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the checkpoints of one training run")
    parser.add_argument("--last", type=int, default=5, help="number of checkpoints, the latest ones (default: 5)")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    try:
        paths = last_checkpoints(args.folder, args.last)
        state = average_checkpoints(paths)
    except ValueError as error:
        print(f"aggdec-average: {error}", file=sys.stderr)
        return 1
    partial = args.output.with_name(args.output.name + ".partial")
    torch.save(state, partial)
    partial.rename(args.output)
    print(f"mean of {', '.join(path.name for path in paths)} in {args.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
