"""The settings, plan and measurements of `aggdec drafter`, in a file of its folder: a stopped run goes on with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fairseq_aggdec import structured_files
from fairseq_aggdec.bulk.settings import difference
from fairseq_aggdec.errors import AggdecError

NAME = "drafter.json"
DRAFTER = "drafter.pt"
"""the file of the finished drafter"""


@dataclass(frozen=True)
class Settings:
    """What was asked for. More minutes or updates go on in the same folder; other settings need another one."""

    verifier: str
    """SHA-256 of the checkpoint"""
    data: str
    """SHA-256 of the splits and dictionaries"""
    minutes: float | None
    updates: int | None
    decoder_layers: int
    block_size: int


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
    saves: int = 20
    """how many checkpoints the training writes"""
    measured: int = 100
    """the most sentences that the drafter is measured with"""


@dataclass
class Record:
    """The content of the file."""

    settings: Settings
    plan: Plan | None = None
    measured: list[Measured] | None = None

    @classmethod
    def open(cls, folder: Path, settings: Settings) -> Record:
        """The record of a folder; it is begun where there is none.

        Raises:
            AggdecError: the folder was begun with other settings, or by something else.
        """
        path, advice = folder / NAME, "name another folder"
        if path.is_file():
            found = structured_files.read(path, cls, advice)
            if found.plan is None:  # nothing was done yet that needs the same settings
                found.settings = settings
            before = replace(found.settings, minutes=settings.minutes, updates=settings.updates)
            if other := difference(asdict(settings), asdict(before), "now", "there"):
                raise AggdecError(
                    f"--out {folder}: was begun with other settings ({other}); go on with those, or {advice}"
                )
            found.lengthen(settings, folder)
            return found
        if any(folder.iterdir()):
            raise AggdecError(f"--out {folder}: is there, and was not made by aggdec drafter; {advice}")
        record = cls(settings)
        record.save(folder)
        return record

    def lengthen(self, settings: Settings, folder: Path) -> None:
        """Plan the further updates that `settings` ask for, if any; the text that was distilled stays as it is.

        Raises:
            AggdecError: they ask for fewer updates or minutes than were planned.
        """
        plan, before = self.plan, self.settings
        if plan is None or (settings.minutes, settings.updates) == (before.minutes, before.updates):
            return
        minutes = plan.minutes["distil"] + plan.minutes["train"]
        update = plan.minutes["train"] / plan.updates
        asked = settings.updates
        if asked is None:
            asked = plan.updates + round(((settings.minutes or 0) - (before.minutes or minutes)) / update)
        if asked < plan.updates:
            raise AggdecError(
                f"--out {folder}: was begun with {plan.updates:,} updates in {minutes:.0f} minutes, which is more; "
                "give more than that, or name another folder"
            )
        (folder / DRAFTER).unlink(missing_ok=True)
        planned = {**plan.minutes, "train": asked * update}
        self.settings, self.measured = settings, None
        self.plan = replace(plan, updates=asked, minutes=planned)
        self.save(folder)

    def save(self, folder: Path) -> None:
        """Write the file."""
        structured_files.write(folder / NAME, self)
