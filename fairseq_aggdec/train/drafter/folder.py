"""The settings, plan and measurements of `aggdec drafter`, in a file of its folder: a stopped run goes on with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fairseq_aggdec import structured_files
from fairseq_aggdec.bulk.settings import difference
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.drafter.plan import Measured, Plan, with_updates

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
            if found.settings != settings:
                found._lengthen(settings, folder)
            return found
        if any(folder.iterdir()):
            raise AggdecError(f"--out {folder}: is there, and was not made by aggdec drafter; {advice}")
        record = cls(settings)
        record.save(folder)
        return record

    def _lengthen(self, settings: Settings, folder: Path) -> None:
        """Plan more updates, as `settings` ask for; the text that was distilled stays as it is.

        Raises:
            AggdecError: they ask for fewer updates or minutes than were planned.
        """
        plan = self.plan
        assert plan is not None
        minutes = plan.minutes["distil"] + plan.minutes["train"]
        asked = settings.updates
        if asked is None:
            added = (settings.minutes or 0) - (self.settings.minutes or minutes)
            asked = plan.updates + round(added * plan.updates / plan.minutes["train"])
        if asked < plan.updates:
            raise AggdecError(
                f"--out {folder}: was begun with {plan.updates:,} updates in {minutes:.0f} minutes, which is more; "
                "give more than that, or name another folder"
            )
        (folder / DRAFTER).unlink(missing_ok=True)
        self.settings, self.measured, self.plan = settings, None, with_updates(plan, asked)
        self.save(folder)

    def save(self, folder: Path) -> None:
        """Write the file."""
        structured_files.write(folder / NAME, self)
