"""Reads how well a drafter drafted, and after how long a training, from the log of fairseq-hydra-train."""

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
    """One look at the validation set.

    Attributes:
        update: the number of updates before it.
        seconds: spent in training steps until then, without validations and saving.
        accepted: mean number of leading right tokens of a block.
    """

    update: int
    seconds: float
    accepted: float


def read_validations(path: Path) -> list[Validation]:
    """The validations in a log of `log_format: simple`, by number of updates.

    Of a training that was resumed, what it did again replaces what was lost.

    Raises:
        AggdecError: the log holds no validation of a drafter, or no time (`log_interval` must divide
            `validate_interval_updates`).
    """
    seconds: dict[int, float] = {}
    accepted: dict[int, float] = {}
    for line in read_text_lines(path):
        if "[train_inner]" in line:
            figures = _figures(line)
            seconds[int(figures["num_updates"])] = figures["train_wall"]  # since the line before
        elif "[valid]" in line and " accepted " in line:
            figures = _figures(line)
            accepted[int(figures["num_updates"])] = figures["accepted"]
    if not accepted:
        raise AggdecError(f"{path}: holds no validation with `accepted`; is it the log of a drafter's training?")
    if untimed := sorted(accepted.keys() - seconds.keys()):
        raise AggdecError(
            f"{path}: no training time at update {untimed[0]}: validate_interval_updates and max_update must be "
            "multiples of log_interval"
        )
    return [
        Validation(update, sum(spent for at, spent in seconds.items() if at <= update), accepted[update])
        for update in sorted(accepted)
    ]


def _figures(line: str) -> dict[str, float]:
    return {name: float(value) for name, value in _FIGURE.findall(line)}


def seconds_to(validations: Sequence[Validation], level: float) -> float | None:
    """Training time until `accepted` first reached a level, linear between two validations; None if it never did."""
    before = None
    for now in validations:
        if now.accepted >= level:
            if before is None or now.accepted == before.accepted:
                return now.seconds
            share = (level - before.accepted) / (now.accepted - before.accepted)
            return before.seconds + share * (now.seconds - before.seconds)
        before = now
    return None
