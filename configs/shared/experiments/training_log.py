"""Reads the validations of a drafter's training, and the training time before each, from fairseq-hydra-train's log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines

_FIGURE = re.compile(r"\b(\w+)[= ](-?\d+(?:\.\d+)?(?:e-?\d+)?)\b")


@dataclass(frozen=True)
class Validation:
    """One validation.

    Attributes:
        update: number of updates before it.
        seconds: time of all training steps before it, without validations and saving.
        accepted: number of right tokens at the beginning of a block, mean over blocks.
    """

    update: int
    seconds: float
    accepted: float


def read_validations(path: Path) -> list[Validation]:
    """The validations in a log of `log_format: simple`, by number of updates.

    If a training was resumed, the updates that it repeated replace the earlier ones.

    Raises:
        AggdecError: the log holds no validation of a drafter, or no time (`log_interval` must divide
            `validate_interval_updates`).
    """
    seconds: dict[int, float] = {}
    accepted: dict[int, float] = {}
    for line in read_text_lines(path):
        if "[train_inner]" in line:
            figures = _figures(line)
            # seconds since the line before
            seconds[int(figures["num_updates"])] = figures["train_wall"]
        elif "[valid]" in line and " accepted " in line:
            figures = _figures(line)
            accepted[int(figures["num_updates"])] = figures["accepted"]
    if not accepted:
        raise AggdecError(
            f"{path}: holds no validation with `accepted`; is it the log of a drafter's training?"
        )
    if untimed := sorted(accepted.keys() - seconds.keys()):
        raise AggdecError(
            f"{path}: no training time at update {untimed[0]}: validate_interval_updates and max_update must be "
            "multiples of log_interval"
        )
    return [
        Validation(
            update,
            sum(spent for at, spent in seconds.items() if at <= update),
            accepted[update],
        )
        for update in sorted(accepted)
    ]


def _figures(line: str) -> dict[str, float]:
    return {name: float(value) for name, value in _FIGURE.findall(line)}


def seconds_to_reach(validations: Sequence[Validation], level: float) -> float | None:
    """Seconds of training until `accepted` first reaches a level, interpolated linearly; None if it never does."""
    before = None
    for now in validations:
        if now.accepted >= level:
            if before is None or now.accepted == before.accepted:
                return now.seconds
            share = (level - before.accepted) / (now.accepted - before.accepted)
            return before.seconds + share * (now.seconds - before.seconds)
        before = now
    return None
