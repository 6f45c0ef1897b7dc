"""Measures how long distillation and training take on this machine, and plans how much of both to do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from fairseq_aggdec.lab.drafter_training.recipe import TOKENS, Recipe
from fairseq_aggdec.lab.drafter_training.record import Plan
from fairseq_aggdec.lab.drafter_training.training import logged
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.shards.batches import plan_batches
from fairseq_aggdec.shards.data_bin import DataBin, write_sample
from fairseq_aggdec.shards.distilling import Teacher
from fairseq_aggdec.shards.settings import MAX_TOKENS, SearchOptions

DECODING = "greedy"
"""how the verifier distils: by this plugin's engine, with the output of fairseq's beam of 1"""
VALIDATION = 200
"""the most validation sentences that are distilled: `accepted` is measured on them"""
_TRIED = 500  # sentences
_LONGEST_TRIAL = 20.0  # seconds of decoding
_TRIED_UPDATES = 8
_FIRST_UPDATES = 2  # slower than others
_FEWEST_UPDATES = 20
_DISTILLATION = 1 / 3
"""the largest part of --minutes that goes to distillation, which makes no more than training reads once"""
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


def try_out(data: DataBin, recipe: Recipe, device: torch.device, bf16: bool, folder: Path) -> Costs:
    """Distil a few hundred sentences and train a few updates; the last checkpoint stays in the folder.

    Args:
        data: the original data.
        recipe: the training.
        device: where it will run.
        bf16: whether to compute in bfloat16.
        folder: an empty folder for all that the trial leaves.

    Raises:
        AggdecError: the verifier does not fit the data, or cannot be trained from.
    """
    sample = write_sample(folder / "data-bin", data, {"train": _TRIED, "valid": 1})
    token, sentence = _decoding_costs(sample, recipe.verifier, device, decoded_in(device, bf16))
    training = recipe.arguments(sample, folder, _TRIED_UPDATES, bf16)
    arguments = [*training, "--log-interval", "1", "--save-interval-updates", "0", "--disable-validation"]
    ends = [line.seconds for line in logged(arguments, folder / "train.log")]
    between = [after - before for before, after in zip(ends[_FIRST_UPDATES - 1 :], ends[_FIRST_UPDATES:], strict=False)]
    return Costs(token, sentence, median(between))


def decoded_in(device: torch.device, bf16: bool) -> str:
    """The precision in which the verifier decodes; a CPU that trains in bfloat16 decodes in fp32."""
    return "bf16" if bf16 and device.type != "cpu" else "fp32"


def _decoding_costs(data: DataBin, verifier: Path, device: torch.device, precision: str) -> tuple[float, float]:
    """Seconds of a source token in a batch, and of a sentence alone."""
    teacher = Teacher(str(verifier), data, SearchOptions(beam=1), DECODING, precision, device.type == "cpu")
    sources = data.source("train")
    plan = plan_batches((sources[number] for number in range(len(sources))), teacher.longest_source, MAX_TOKENS)
    first, *alone = [int(batch[0]) for batch in plan.batches[-4:]] * 2
    teacher.translate([first], [sources[first]])  # arranges the weights
    begun = time.monotonic()
    for number in alone:
        teacher.translate([number], [sources[number]])
    sentence = (time.monotonic() - begun) / len(alone)
    tokens, begun = 0, time.monotonic()
    for batch in plan.batches:
        chosen = [sources[int(number)] for number in batch]
        teacher.translate(batch.tolist(), chosen)
        tokens += sum(map(len, chosen))
        if time.monotonic() - begun > _LONGEST_TRIAL:
            break
    return (time.monotonic() - begun) / tokens, sentence


def plan_of(data: DataBin, costs: Costs, minutes: float | None, updates: int | None, bf16: bool, measured: int) -> Plan:
    """How many sentences to distil and how many updates to train.

    Args:
        data: the original data.
        costs: what `try_out` returned.
        minutes: the time for both; None: all sentences are distilled.
        updates: the number of updates; None: as many as there is time for.
        bf16: whether they compute in bfloat16.
        measured: the number of decodings of one sentence at the end.
    """
    source = data.source("train")
    whole = costs.token * int(source.sizes.sum())
    share = 1.0
    if minutes is not None:
        read_once = costs.token / (costs.token + costs.update / TOKENS)  # of the time, for what training reads once
        share = min(1.0, min(_DISTILLATION, read_once) * 60 * minutes / whole)
    if updates is None:
        assert minutes is not None
        updates = max(_FEWEST_UPDATES, round((60 * minutes - share * whole) / costs.update))
    sentences = {"train": max(1, round(share * len(source))), "valid": min(VALIDATION, len(data.source("valid")))}
    seconds = {"distil": share * whole, "train": updates * costs.update, "measure": measured * costs.sentence}
    return Plan(sentences, updates, bf16, {name: each / 60 for name, each in seconds.items()})


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
