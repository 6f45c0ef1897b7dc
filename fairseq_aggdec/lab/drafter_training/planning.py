"""Measures how long distillation and training take on this machine, and plans how much of both to do."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch

from fairseq_aggdec.bulk.batches import plan_batches
from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from fairseq_aggdec.bulk.settings import MAX_TOKENS
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.lab.drafter_training.recipe import AVERAGED, SAVES, TOKENS, Recipe
from fairseq_aggdec.lab.drafter_training.record import Plan
from fairseq_aggdec.lab.drafter_training.training import logged
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.train.distilling import Teacher

DECODING = "greedy"
"""how the verifier distils: by this plugin's engine, with the output of fairseq's beam of 1"""
VALIDATION = 200
"""the most validation sentences that are distilled: `accepted` is measured on them"""
_TRIED = 500  # sentences
_LONGEST_TRIAL, _TRIAL = 20.0, 1 / 12
"""seconds of decoding in the trial, at most, and the largest part of --minutes for it"""
_ALONE = 16  # sentences that are decoded alone in the trial, of several batches, in a quarter of that time at most
_TRIED_UPDATES, _TRAINING = 8, 3  # updates of the trial, in three times that time at most
_FIRST_UPDATES = 2  # slower than others
_FEWEST_UPDATES = 20
_DISTILLATION, _LEAST_DISTILLATION = 1 / 3, 1 / 20
"""the parts of the time left that go to distillation, which makes no more than training reads once"""
_MEASURING, _SAVING = 0.15, 0.1
"""the largest parts of the time left that go to the measurement, and of the training to its checkpoints"""
_BROUGHT = (
    ("text", "verifier's decoder", "updates", "tokens an iteration", "over greedy"),
    (
        ("translation, a user's pair", "", "174", "1.72", "0.79x"),
        ("English-German", "3 layers of 256", "916", "3.11", "1.03x"),
        ("German-English", "3 layers of 256", "2,910", "3.43", "1.10x"),
        ("English-German", "3 layers of 256", "3,076", "2.93", "1.12x"),
        ("splitting sentences", "1 layer of 256", "10,512", "7.41", "1.70x"),
    ),
)
"""the fastest block size of each run of `aggdec drafter` that was written down"""


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


def trial_seconds(minutes: float | None) -> float:
    """How long the trial decodes at most."""
    return _LONGEST_TRIAL if minutes is None else min(_LONGEST_TRIAL, 60 * minutes * _TRIAL)


def try_out(data: DataBin, recipe: Recipe, device: torch.device, bf16: bool, folder: Path, seconds: float) -> Costs:
    """Distil a few hundred sentences and train a few updates; the last checkpoint stays in the folder.

    Args:
        data: the original data.
        recipe: the training.
        device: where it will run.
        bf16: whether to compute in bfloat16.
        folder: an empty folder for all that the trial leaves.
        seconds: how long it decodes at most.

    Raises:
        AggdecError: the verifier does not fit the data, or cannot be trained from.
    """
    sample = write_sample(folder / "data-bin", data, {"train": _TRIED, "valid": VALIDATION})
    token, sentence = _decoding_costs(sample, recipe.verifier, device, decoded_in(device, bf16), seconds)
    arguments = [*recipe.arguments(sample, folder, _TRIED_UPDATES, bf16, 1), "--log-interval", "1"]
    arguments += ["--stop-time-hours", str(_TRAINING * seconds / 3600)]
    begun = time.monotonic()
    ends = [line.seconds for line in logged(arguments, folder / "train.log") if line.kind == "train_inner"]
    ended = time.monotonic()
    between = [after - before for before, after in zip(ends[_FIRST_UPDATES - 1 :], ends[_FIRST_UPDATES:], strict=False)]
    start = ends[0] - begun
    return Costs(token, sentence, median(between or [start]), start, ended - ends[-1])


def decoded_in(device: torch.device, bf16: bool) -> str:
    """The precision in which the verifier decodes; a CPU that trains in bfloat16 decodes in fp32."""
    return "bf16" if bf16 and device.type != "cpu" else "fp32"


def _decoding_costs(
    data: DataBin, verifier: Path, device: torch.device, precision: str, seconds: float
) -> tuple[float, float]:
    """Seconds of a source token in a batch, and of a sentence alone; both take `seconds` at most."""
    teacher = Teacher(str(verifier), data, SearchOptions(beam=1), DECODING, precision, device.type == "cpu")
    sources = data.source("train")
    plan = plan_batches((sources[number] for number in range(len(sources))), teacher.longest_source, MAX_TOKENS)
    first, *alone = [int(number) for batch in plan.batches for number in batch[:: len(batch) // 4 + 1]][-_ALONE:] * 2
    teacher.translate([first], [sources[first]])  # arranges the weights
    begun, ends = time.monotonic(), []
    for number in alone:
        teacher.translate([number], [sources[number]])
        ends.append(time.monotonic() - begun)
        if ends[-1] > seconds / 4:
            break
    tokens, begun = 0, time.monotonic()
    for batch in plan.batches:
        chosen = [sources[int(number)] for number in batch]
        teacher.translate(batch.tolist(), chosen)
        tokens += sum(map(len, chosen))
        if time.monotonic() - begun > 3 * seconds / 4:
            break
    return (time.monotonic() - begun) / tokens, ends[-1] / len(ends)


def plan_of(
    data: DataBin, costs: Costs, minutes: float | None, updates: int | None, bf16: bool, measured: int, decodings: int
) -> Plan:
    """How many sentences to distil, how many updates to train, and how many sentences to measure with.

    Args:
        data: the original data.
        costs: what `try_out` returned.
        minutes: the time left for all stages; None: all sentences are distilled and measured with.
        updates: the number of updates; None: as many as there is time for.
        bf16: whether they compute in bfloat16.
        measured: the most sentences to measure with.
        decodings: how often each of them is decoded.
    """
    source, valid = data.source("train"), data.source("valid")
    whole = costs.token * int(source.sizes.sum())
    share, saves = 1.0, SAVES
    if minutes is not None:
        left = 60 * minutes - costs.start
        measured = min(measured, max(1, int(_MEASURING * left / (decodings * costs.sentence))))
        left = max(1.0, left - measured * decodings * costs.sentence)
        read_once = costs.token / (costs.token + costs.update / TOKENS)  # of the time, for what training reads once
        share = min(1.0, min(_DISTILLATION, max(_LEAST_DISTILLATION, read_once)) * left / whole)
        saves = min(SAVES, max(AVERAGED, int(_SAVING * left / costs.save)))
    pairs = max(1, round(share * len(source)))
    validated = min(VALIDATION, len(valid), max(1, pairs // 5))
    distil = costs.token * float(pairs * source.sizes.mean() + validated * valid.sizes.mean())
    measure, most = measured * decodings * costs.sentence, math.inf
    if updates is None:
        most = left - distil  # fairseq ends then
        updates = max(_FEWEST_UPDATES, round((most - saves * costs.save) / costs.update))
    train = min(most, updates * costs.update + saves * costs.save)
    seconds = {"distil": distil, "start": costs.start, "train": train, "measure": measure}
    planned = {name: each / 60 for name, each in seconds.items()}
    return Plan({"train": pairs, "valid": validated}, updates, bf16, planned, None, saves, measured)


def shortened(plan: Plan, minutes: float) -> Plan:
    """The plan with no more updates than there is time for; `minutes` is the time left for training and measuring."""
    share = min(1.0, (minutes - plan.minutes.get("start", 0.0) - plan.minutes["measure"]) / plan.minutes["train"])
    updates = max(min(plan.updates, _FEWEST_UPDATES), round(share * plan.updates))
    return replace(
        plan, updates=updates, minutes={**plan.minutes, "train": plan.minutes["train"] * updates / plan.updates}
    )


def describe(plan: Plan, sentences: int) -> str:
    """The plan as a few lines; `sentences` is the number of training sentences that there are."""
    what = {
        "distil": f"{plan.sentences['train']:,} of {sentences:,} training sentences, translated by the verifier",
        "train": f"{plan.updates:,} updates in {'bfloat16' if plan.bf16 else 'single precision'}",
        "measure": "tokens an iteration, and speed beside greedy",
    }
    lines = ["On this machine:"]
    lines += [f"  {name:8} about {_minutes(plan.minutes[name]):12} {what[name]}" for name in what]
    lines += [
        "",
        "What updates have brought elsewhere, one sentence at a time on a CPU:",
        text_table(*_BROUGHT, TERMINAL),
    ]
    lines.append(
        f"What {plan.updates:,} updates will bring here is not known: it depends on how easy the output is to foresee, "
        "and on the depth of the verifier's decoder. The same command with a larger number trains on."
    )
    if plan.tried is not None:
        needed = f"{plan.tried.needed:.1f} tokens an iteration, with drafts of {plan.tried.block_size}"
        lines.append(f"To be faster than greedy, gad will need about {needed}.")
    return "\n".join(lines)


def _minutes(number: float) -> str:
    rounded = round(number)
    return f"{rounded} minute{'s' * (rounded > 1)}" if rounded else "a minute at most"
