"""What `aggdec drafter` was asked for, has planned and measured, in a file of its folder, to continue a stopped run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairseq_aggdec import structured_files
from fairseq_aggdec.bulk.settings import difference
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.drafter.plan import Measured, Plan

NAME = "drafter.json"
DRAFTER = "drafter.pt"
"""the file of the finished drafter"""


@dataclass(frozen=True)
class Record:
    """The content of the file."""

    settings: dict[str, Any]
    """those that stay as they were: fingerprints of the verifier and of the data, and the size of the drafter"""
    minutes: float | None
    updates: int | None
    plan: Plan | None = None
    measured: list[Measured] | None = None


def open_record(folder: Path, asked: Record) -> Record:
    """The record of a folder, which is begun with what is asked for, or trains on for more minutes or updates.

    Raises:
        AggdecError: the folder was begun with other settings or by something else, or asked for more before.
    """
    path = folder / NAME
    advice = "name another folder"
    if not path.is_file() and any(folder.iterdir()):
        raise AggdecError(
            f"--out {folder}: is there, and was not made by aggdec drafter; {advice}"
        )
    found = structured_files.read(path, Record, advice) if path.is_file() else asked
    plan = found.plan
    if plan is None:  # nothing was done yet that needs the same settings
        return save(folder, asked)
    if other := difference(asked.settings, found.settings, "now", "there"):
        raise AggdecError(
            f"--out {folder}: was begun with other settings ({other}); go on with those, or {advice}"
        )
    if (asked.minutes, asked.updates) == (found.minutes, found.updates):
        return found
    minutes = (plan.seconds["distil"] + plan.seconds["train"]) / 60
    updates = asked.updates
    if updates is None:
        added = (asked.minutes or 0) - (found.minutes or minutes)
        updates = plan.updates + round(60 * added / plan.trial.update)
    if updates < plan.updates:
        raise AggdecError(
            f"--out {folder}: was begun with {plan.updates:,} updates in {minutes:.0f} minutes, which is more; "
            f"give more than that, or {advice}"
        )
    (folder / DRAFTER).unlink(missing_ok=True)  # what was distilled stays as it is
    return save(folder, replace(asked, plan=replace(plan, updates=updates)))


def save(folder: Path, record: Record) -> Record:
    """Write the file."""
    structured_files.write(folder / NAME, record)
    return record
