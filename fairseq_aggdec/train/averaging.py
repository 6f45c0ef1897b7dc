"""`aggdec average`: the mean of a training run's last checkpoints."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from fairseq_aggdec.compat.checkpoints import read_checkpoint, without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import refuse_overwriting, written_whole


def last_checkpoints(folder: Path, count: int) -> list[Path]:
    """The latest `count` files `checkpoint_EPOCH_UPDATE.pt` or `checkpointEPOCH.pt` of a folder, the latest last.

    If there are both kinds, they are ordered by update, and two of the same update count once.

    Raises:
        AggdecError: the folder holds fewer.
    """
    by_epoch = _numbered(folder, r"checkpoint(\d+)")
    by_update = _numbered(folder, r"checkpoint_\d+_(\d+)")
    if by_epoch and by_update:
        last = list(by_epoch.values())[-count:]
        by_update = {_updates(path): path for path in last} | by_update
    found = sorted((by_update or by_epoch).items())
    if len(found) < count:
        raise AggdecError(
            f"{folder} holds {len(found)} numbered checkpoints, fewer than the {count} asked for"
        )
    return [path for _, path in found[-count:]]


def _numbered(folder: Path, pattern: str) -> dict[int, Path]:
    """The folder's checkpoints with a name of this form, sorted by the number in it."""
    found = {
        int(match[1]): path
        for path in folder.glob("checkpoint*.pt")
        if (match := re.fullmatch(pattern, path.stem))
    }
    return dict(sorted(found.items()))


def _updates(path: Path) -> int:
    """How many updates are before a checkpoint."""
    return int(read_checkpoint(path)["optimizer_history"][-1]["num_updates"])


def write_average(paths: Sequence[Path], output: Path) -> None:
    """Write the last checkpoint with the mean of all checkpoints' weights, and without its training state.

    Means are computed in double precision and stored in the type of the last checkpoint's weights, bfloat16 as float32,
    which runs on any machine. Integers are not averaged: single numbers, such as a count of updates, are the last
    checkpoint's; tensors of integers, such as a fingerprint, must be equal in all.

    Raises:
        AggdecError: the checkpoints differ in the names of their parameters or in a tensor of integers, or `output` is
            one of them.
    """
    refuse_overwriting(output, paths)
    total: dict[str, torch.Tensor] = {}
    state: dict[str, Any] = {}
    for path in tqdm(paths, desc="average", unit=" checkpoints"):
        state = read_checkpoint(path)
        weights = state["model"]
        if total and weights.keys() != total.keys():
            raise AggdecError(
                f"{path} has other parameters than {paths[0]}: average checkpoints of one training run"
            )
        for name, value in weights.items():
            if value.is_floating_point():
                value = value.double()
                total[name] = total[name] + value if name in total else value
            elif name in total and value.dim() > 0 and not value.equal(total[name]):
                raise AggdecError(
                    f"{path}: `{name}` differs from that of {paths[0]} and cannot be averaged, as it holds integers: "
                    "average checkpoints of one training run"
                )
            else:
                total[name] = value
    for name, value in state["model"].items():
        if value.is_floating_point():
            dtype = torch.float32 if value.dtype == torch.bfloat16 else value.dtype
            total[name] = (total[name] / len(paths)).to(dtype)
    with written_whole(output) as partial:
        torch.save({**without_training(state), "model": total}, partial)
