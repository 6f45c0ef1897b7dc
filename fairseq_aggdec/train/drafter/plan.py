"""Measures how long distillation and training take on this machine, and plans how much of both to do."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from tabulate import tabulate

from fairseq_aggdec.bulk.batches import plan_batches
from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from fairseq_aggdec.bulk.settings import MAX_TOKENS
from fairseq_aggdec.generation.modes import GREEDY
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.train.distilling import Teacher
from fairseq_aggdec.train.drafter.fairseq_train import logged
from fairseq_aggdec.train.drafter.recipe import AVERAGED, SAVES, TOKENS, Recipe

DECODING = GREEDY
"""how the verifier distils: by this plugin's engine, with the output of fairseq's beam of 1"""
SENTENCES, ROUNDS = 100, 2
"""the most validation sentences that the drafter is measured with, one at a time, and how often each is decoded"""
_VALIDATION = 200
"""the most validation sentences that are distilled: `accepted` is measured on them"""
_TRIED = 500  # sentences
_LONGEST_TRIAL, _TRIAL = 20.0, 1 / 12
"""seconds of decoding in the trial, at most, and the largest part of --minutes for it"""
_TRIED_UPDATES, _TRAINING = 8, 3  # updates of the trial, in three times that time at most
_FIRST_UPDATES = 2  # slower than others
_FEWEST_UPDATES = 20
_DISTILLATION, _LEAST_DISTILLATION = 1 / 3, 1 / 20
"""the parts of the time left that go to distillation, which makes no more than training reads once"""
_MEASURING, _SAVING = 0.15, 0.1
"""the largest parts of the time left that go to the measurement, and of the training to its checkpoints"""
_BROUGHT = (
    ("translation, a user's pair", "", "174", "1.72", "0.79x"),
    ("English-German", "3 layers of 256", "916", "3.11", "1.03x"),
    ("German-English", "3 layers of 256", "2,910", "3.43", "1.10x"),
    ("English-German", "3 layers of 256", "3,076", "2.93", "1.12x"),
    ("splitting sentences", "1 layer of 256", "10,512", "7.41", "1.70x"),
)
"""the fastest block size of each run of `aggdec drafter` that was written down"""


@dataclass(frozen=True)
class Measured:
    """The drafter at one block size, on the first validation sentences, one at a time."""

    block_size: int
    tokens: float
    """mean accepted tokens: committed tokens of an iteration, the verifier's own included"""
    speed_up: float
    """over greedy decoding in the same rounds"""

    @property
    def needed(self) -> float:
        """Mean accepted tokens with which `gad` would be as fast as greedy decoding: what an iteration costs."""
        return self.tokens / self.speed_up


@dataclass(frozen=True)
class Costs:
    """What the trial has measured, in seconds."""

    token: float
    """of a source, in a batch that is distilled"""
    sentence: float
    """decoded alone"""
    update: float
    """of the training"""
    start: float
    """of the training, until its first update"""
    save: float
    """a checkpoint of the training, and the validation before it"""


@dataclass(frozen=True)
class Plan:
    """The work that the settings come to at the measured speed of the machine."""

    sentences: dict[str, int]
    """the number of sentences to distil, by split"""
    updates: int
    bf16: bool
    """whether distillation and training compute in bfloat16"""
    minutes: dict[str, float]
    """the time that each stage will take, by its name"""
    tried: Measured | None = None
    """a drafter that has hardly been trained; None in folders of earlier versions"""
    saves: int = SAVES
    """how many checkpoints the training writes"""
    measured: int = SENTENCES
    """the most sentences that the drafter is measured with"""


def trial_seconds(minutes: float | None) -> float:
    """How long the trial decodes at most."""
    return _LONGEST_TRIAL if minutes is None else min(_LONGEST_TRIAL, 60 * minutes * _TRIAL)


def try_out(data: DataBin, recipe: Recipe, device: torch.device, bf16: bool, folder: Path, seconds: float) -> Costs:
    """Distil a few hundred sentences, in `seconds` at most, and train a few updates.

    The last checkpoint stays in the folder, which must be empty before. The cost of a sentence alone is not measured.

    Raises:
        AggdecError: the verifier does not fit the data, or cannot be trained from.
    """
    sample = write_sample(folder / "data-bin", data, {"train": _TRIED, "valid": _VALIDATION})
    token = _seconds_of_a_token(teacher_of(sample, recipe, device, bf16), sample, seconds)
    arguments = [*recipe.arguments(sample, folder, _TRIED_UPDATES, bf16, 1), "--log-interval", "1"]
    arguments += ["--stop-time-hours", str(_TRAINING * seconds / 3600)]
    begun = time.monotonic()
    ends = [line.seconds for line in logged(arguments, folder / "train.log") if line.kind == "train_inner"]
    ended = time.monotonic()
    between = [after - before for before, after in zip(ends[_FIRST_UPDATES - 1 :], ends[_FIRST_UPDATES:], strict=False)]
    start = ends[0] - begun
    return Costs(token, 0.0, median(between or [start]), start, ended - ends[-1])


def teacher_of(data: DataBin, recipe: Recipe, device: torch.device, bf16: bool) -> Teacher:
    """The verifier, which distils the data; a CPU that trains in bfloat16 decodes in fp32."""
    is_cpu = device.type == "cpu"
    precision = "bf16" if bf16 and not is_cpu else "fp32"
    return Teacher(str(recipe.verifier), data, SearchOptions(beam=1), DECODING, precision, is_cpu)


def _seconds_of_a_token(teacher: Teacher, data: DataBin, seconds: float) -> float:
    """Seconds of a source token in a batch that is distilled, measured in `seconds` at most."""
    sources = data.source("train")
    plan = plan_batches((sources[number] for number in range(len(sources))), teacher.longest_source, MAX_TOKENS)
    first = int(plan.batches[0][0])
    teacher.translate([first], [sources[first]])  # arranges the weights
    tokens, begun = 0, time.monotonic()
    for batch in plan.batches:
        chosen = [sources[int(number)] for number in batch]
        teacher.translate(batch.tolist(), chosen)
        tokens += sum(map(len, chosen))
        if time.monotonic() - begun > seconds:
            break
    return (time.monotonic() - begun) / tokens


def plan_of(
    data: DataBin, costs: Costs, minutes: float | None, updates: int | None, bf16: bool, decodings: int
) -> Plan:
    """How many sentences to distil, how many updates to train, and how many sentences to measure with.

    Args:
        data: the original data.
        costs: what the trial has measured.
        minutes: the time left for all stages; None: all sentences are distilled and measured with.
        updates: the number of updates; None: as many as there is time for.
        bf16: whether they compute in bfloat16.
        decodings: how often each sentence is decoded that the drafter is measured with.
    """
    source, valid = data.source("train"), data.source("valid")
    whole = costs.token * int(source.sizes.sum())
    share, saves, measured = 1.0, SAVES, min(SENTENCES, len(valid))
    if minutes is not None:
        left = 60 * minutes - costs.start
        measured = min(measured, max(1, int(_MEASURING * left / (decodings * costs.sentence))))
        left = max(1.0, left - measured * decodings * costs.sentence)
        read_once = costs.token / (costs.token + costs.update / TOKENS)  # of the time, for what training reads once
        share = min(1.0, min(_DISTILLATION, max(_LEAST_DISTILLATION, read_once)) * left / whole)
        saves = min(SAVES, max(AVERAGED, int(_SAVING * left / costs.save)))
    pairs = max(1, round(share * len(source)))
    validated = min(_VALIDATION, len(valid), max(1, pairs // 5))
    distil = costs.token * float(pairs * source.sizes.mean() + validated * valid.sizes.mean())
    most = math.inf
    if updates is None:
        most = left - distil  # fairseq ends then
        updates = max(_FEWEST_UPDATES, round((most - saves * costs.save) / costs.update))
    train = min(most, updates * costs.update + saves * costs.save)
    seconds = {
        "distil": distil, "start": costs.start, "train": train, "measure": measured * decodings * costs.sentence,
    }  # fmt: skip
    planned = {name: each / 60 for name, each in seconds.items()}
    return Plan({"train": pairs, "valid": validated}, updates, bf16, planned, None, saves, measured)


def shortened(plan: Plan, minutes: float) -> Plan:
    """The plan with no more updates than there is time for; `minutes` is the time left for training and measuring."""
    share = min(1.0, (minutes - plan.minutes.get("start", 0.0) - plan.minutes["measure"]) / plan.minutes["train"])
    return with_updates(plan, max(min(plan.updates, _FEWEST_UPDATES), round(share * plan.updates)))


def with_updates(plan: Plan, updates: int) -> Plan:
    """The plan with another number of updates."""
    train = plan.minutes["train"] * updates / plan.updates
    return replace(plan, updates=updates, minutes={**plan.minutes, "train": train})


def describe(plan: Plan, sentences: int) -> str:
    """The plan as a few lines; `sentences` is the number of training sentences that there are."""
    what = {
        "distil": f"{plan.sentences['train']:,} of {sentences:,} training sentences, translated by the verifier",
        "train": f"{plan.updates:,} updates in {'bfloat16' if plan.bf16 else 'single precision'}",
        "measure": "tokens an iteration, and speed beside greedy",
    }
    heads = ("text", "verifier's decoder", "updates", "tokens an iteration", "over greedy")
    lines = [
        "On this machine:",
        *(f"  {name:8} about {_minutes(plan.minutes[name]):12} {what[name]}" for name in what),
        "",
        "What updates have brought elsewhere, one sentence at a time on a CPU:",
        text_table(heads, _BROUGHT),
        f"What {plan.updates:,} updates will bring here is not known: it depends on how easy the output is to foresee, "
        "and on the depth of the verifier's decoder. The same command with a larger number trains on.",
    ]
    if plan.tried is not None:
        needed = f"{plan.tried.needed:.1f} tokens an iteration, with drafts of {plan.tried.block_size}"
        lines.append(f"To be faster than greedy, gad will need about {needed}.")
    return "\n".join(lines)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal."""
    return tabulate(rows, heads, "simple", disable_numparse=True)


def _minutes(number: float) -> str:
    rounded = round(number)
    return f"{rounded} minute{'s' * (rounded > 1)}" if rounded else "a minute at most"
