"""How much to distil and to train, by what the trial has measured and the time there is."""

from dataclasses import dataclass, replace

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.generation.modes import GAD
from fairseq_aggdec.train.drafter.recipe import AVERAGED, SAVES, SHARES, TOKENS

SENTENCES = 100
"""the most validation sentences that the drafter is measured with, one at a time"""
ROUNDS = 2
"""how often each of them is decoded"""
VALIDATION = 200
"""the most validation sentences that are distilled: `accepted` is measured on them"""
_FEWEST_UPDATES = 20
_DISTILLATION = (1 / 20, 1 / 3)
"""the least and the largest part of the time left for distillation, which makes no more than training reads once"""
_MEASURING = 0.15
"""the largest part of the time left that goes to the measurement"""
_SAVING = 0.1
"""the largest part of the training that goes to its checkpoints"""
_DECODINGS = ROUNDS * (1 + len(SHARES))
"""how often each sentence is decoded that the drafter is measured with"""


@dataclass(frozen=True)
class Measured:
    """The drafter at one block size, on the first validation sentences, one at a time."""

    block_size: int
    tokens: float
    """mean accepted tokens: committed tokens of an iteration, the verifier's choice after the draft included"""
    speed_up: float
    """over greedy decoding in the same rounds"""

    @property
    def needed(self) -> float:
        """Mean accepted tokens with which `gad` would be as fast as greedy decoding: what an iteration costs."""
        return self.tokens / self.speed_up

    @property
    def cells(self) -> list[str]:
        """A row of the printed table."""
        numbers = (f"{number:.2f}" for number in (self.tokens, self.needed))
        return [GAD, str(self.block_size), *numbers, f"{self.speed_up:.2f}x"]


@dataclass(frozen=True)
class Trial:
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
    drafter: Measured
    """one that has hardly been trained"""
    bf16: bool
    """whether it computed in bfloat16, as what follows does"""


@dataclass(frozen=True)
class Plan:
    """How much is done at the measured speed of the machine."""

    trial: Trial
    sentences: dict[str, int]
    """how many sentences to distil, by split"""
    tokens: float
    """of their sources"""
    updates: int
    saves: int
    """how many checkpoints the training writes"""
    measured: int
    """the most sentences that the drafter is measured with"""

    @property
    def seconds(self) -> dict[str, float]:
        """The time that each stage will take, by its name."""
        trial = self.trial
        return {
            "distil": self.tokens * trial.token,
            "train": trial.start
            + self.updates * trial.update
            + self.saves * trial.save,
            "measure": self.measured * _DECODINGS * trial.sentence,
        }

    def fitting(self, seconds: float) -> "Plan":
        """The plan with as many updates as there is time for, where so much is left to train and to measure."""
        spare = seconds - self.seconds["train"] - self.seconds["measure"]
        updates = round(self.updates + spare / self.trial.update)
        return replace(self, updates=max(_FEWEST_UPDATES, updates))


def plan_of(
    data: DataBin, trial: Trial, seconds: float | None, updates: int | None
) -> Plan:
    """How many sentences to distil, how many updates to train, and how many sentences to measure with.

    Args:
        data: the original data.
        trial: what was measured.
        seconds: the time left for all stages; None: all sentences are distilled and measured with.
        updates: how many; None: as many as there is time for.
    """
    source = data.source("train")
    valid = data.source("valid")
    share = 1.0
    saves = SAVES
    measured = min(SENTENCES, len(valid))
    if seconds is not None:
        # the measurement
        left = seconds - trial.start
        sentence = _DECODINGS * trial.sentence
        measured = min(measured, max(1, int(_MEASURING * left / sentence)))
        left = max(1.0, left - measured * sentence)
        # distillation: the part of the time that makes what training reads once
        least, most = _DISTILLATION
        read_once = trial.token / (trial.token + trial.update / TOKENS)
        wanted = min(most, max(least, read_once)) * left
        share = min(1.0, wanted / (trial.token * int(source.sizes.sum())))
        # training's checkpoints
        saves = min(SAVES, max(AVERAGED, int(_SAVING * left / trial.save)))
    pairs = max(1, round(share * len(source)))
    validated = min(VALIDATION, len(valid), max(1, pairs // 5))
    tokens = float(pairs * source.sizes.mean() + validated * valid.sizes.mean())
    sentences = {"train": pairs, "valid": validated}
    plan = Plan(trial, sentences, tokens, updates or _FEWEST_UPDATES, saves, measured)
    if updates is None and seconds is not None:
        return plan.fitting(seconds - plan.seconds["distil"])
    return plan


def describe(plan: Plan, sentences: int) -> str:
    """The plan as a few lines; `sentences`: how many training sentences there are."""
    what = {
        "distil": f"{plan.sentences['train']:,} of {sentences:,} training sentences, translated by the verifier",
        "train": f"{plan.updates:,} updates in {'bfloat16' if plan.trial.bf16 else 'single precision'}",
        "measure": "tokens an iteration, and speed beside greedy",
    }
    tried = plan.trial.drafter
    lines = [
        "On this machine:",
        *(
            f"  {name:8} about {_minutes(plan.seconds[name]):12} {text}"
            for name, text in what.items()
        ),
        "",
        f"What {plan.updates:,} updates will bring is not known: it depends on how easy the output is to foresee, and "
        "on the depth of the verifier's decoder (docs/training.md has what updates have brought elsewhere). The same "
        "command with a larger number trains on.",
        f"To be faster than greedy, gad will need about {tried.needed:.1f} tokens an iteration, with drafts of "
        f"{tried.block_size}.",
    ]
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    rounded = round(seconds / 60)
    return f"{rounded} minute{'s' * (rounded > 1)}" if rounded else "a minute at most"
