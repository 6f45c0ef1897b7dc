"""Measures how long distillation and training take on this machine."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from fairseq_aggdec.bulk.batches import plan_batches
from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from fairseq_aggdec.bulk.settings import MAX_TOKENS
from fairseq_aggdec.train.drafter.fairseq_train import logged
from fairseq_aggdec.train.drafter.plan import VALIDATION, Measured, Trial
from fairseq_aggdec.train.drafter.recipe import LAST, Recipe

Measure = Callable[
    [DataBin, Path, Path, str, int, Sequence[int], float], tuple[float, list[Measured]]
]
"""`lab.bench.drafter_speed.drafter_speed`, which the command hands in: training knows no laboratory"""

_LONGEST = 20.0
"""seconds of decoding in the trial, at most"""
_SHARE = 1 / 12
"""the largest part of --minutes for it"""
_DISTILLED = 500
_MEASURED = 8
"""sentences"""
_UPDATES = 8
"""of the trial"""
_TRAINING = 3
"""how many times the seconds of decoding it trains, at most"""
_SLOW = 2
"""first updates, which are slower than others"""


def try_out(
    data: DataBin, recipe: Recipe, folder: Path, minutes: float | None, measure: Measure
) -> Trial:
    """Distil a few hundred sentences, train a few updates, and measure what was trained.

    `folder`: an empty one for the files; `minutes`: the time for all stages, None: there is no limit.

    Raises:
        AggdecError: the verifier does not fit the data, or cannot be trained from.
    """
    seconds = _LONGEST if minutes is None else min(_LONGEST, 60 * minutes * _SHARE)
    sizes = {"train": _DISTILLED, "valid": VALIDATION}
    sample = write_sample(folder / "data-bin", data, sizes)
    token = _seconds_of_a_token(recipe, sample, seconds)
    # training: when each update ended
    arguments = [*recipe.arguments(sample, folder, _UPDATES, 1), "--log-interval", "1"]
    arguments += ["--stop-time-hours", str(_TRAINING * seconds / 3600)]
    begun = time.monotonic()
    ends = [
        time.monotonic()
        for kind, _ in logged(arguments, folder / "train.log")
        if kind == "train_inner"
    ]
    start = ends[0] - begun
    save = time.monotonic() - ends[-1]
    updates = [after - before for before, after in pairwise(ends[_SLOW - 1 :])]
    # decoding, with drafts of middle length
    sentence, (drafter,) = measure(
        data,
        recipe.verifier,
        folder / LAST,
        recipe.device.type,
        _MEASURED,
        [recipe.block_sizes[len(recipe.block_sizes) // 2]],
        time.monotonic() + seconds / 2,
    )
    update = median(updates or [start])
    return Trial(token, sentence, update, start, save, drafter, recipe.bf16)


def _seconds_of_a_token(recipe: Recipe, data: DataBin, seconds: float) -> float:
    """Seconds of a source token in a batch that is distilled, measured in `seconds` at most."""
    teacher = recipe.teacher(data)
    sources = data.source("train")
    plan = plan_batches(sources, teacher.longest_source, MAX_TOKENS)
    batches = plan.shards("train", 1)
    teacher.decode(batches[0])  # arranges the weights
    tokens = 0
    begun = time.monotonic()
    for batch in batches:
        teacher.decode(batch)
        tokens += int(sources.sizes[batch.sentences].sum())
        if time.monotonic() - begun > seconds:
            break
    return (time.monotonic() - begun) / tokens
