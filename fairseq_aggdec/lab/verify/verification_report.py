"""Writes a verification as one screen of text, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fairseq_aggdec import structured_files
from fairseq_aggdec.lab.bench import machine
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.lab.verify.verification import Check, Verification, never_accepted

_SHOWN = 20
"""number of differences in the text; the JSON has all"""

_TITLES = {
    False: "Sentences with the reference's output",
    True: "Under --bit-exact: sentences with the tokens and scores, to the last bit, of greedy on each alone",
}
"""titles of the two tables; True of that of bit-exact decoding"""
_REMEDIES = {
    False: "Take sentences that it can draft for",
    True: "On a CPU, batches are drafted for where that saves time: --drafts whole verifies whole drafts",
}
"""advice if no draft token was accepted; True if that happened in batches only"""


@dataclass(frozen=True)
class Report:
    """A verification, with the command and settings that made it."""

    title: str
    command: str
    verification: Verification
    generation: dict[str, Any]
    """fairseq's generation options that were given"""

    def save(self, path: Path) -> None:
        """Write JSON with one line for each check."""
        head = {
            "title": self.title,
            "command": self.command,
            "date": machine.now(),
            "commit": machine.commit(),
            "machine": machine.machine(),
            "generation": self.generation,
            "passed": not self.verification.failed,
            "left_out": self.verification.left_out,
        }
        structured_files.write(path, {**head, "checks": [asdict(check) for check in self.verification.checks]})

    def text(self) -> str:
        """The text for the terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        done = self.verification
        yield self.title
        yield machine.describe(machine.machine())
        yield ""
        for to_the_bit, title in _TITLES.items():
            checks = [check for check in done.checks if check.to_the_bit == to_the_bit]
            if checks:
                yield f"{title}:\n\n{_table(checks)}\n"
        for precision, reason in done.left_out.items():
            yield f"{precision} was left out: {reason}"
        for mode, checks in never_accepted(done.checks).items():
            places = "; ".join(f"{check.precision} {check.batches}" for check in checks)
            yield (
                f"{mode} never accepted a drafted token, so that its check proves little: {places}. "
                + _REMEDIES[all(check.batch_size > 1 for check in checks)]
            )
        failed_first = sorted(done.checks, key=lambda check: not check.failed)
        found = [line for check in failed_first for line in check.lines]
        yield from islice(found, _SHOWN)
        if len(found) > _SHOWN:
            yield f"... and {len(found) - _SHOWN} more; --json has all"
        where = ", ".join(dict.fromkeys(f"{check.mode} in {check.precision}" for check in done.failed))
        yield (
            f"FAILED: {where}: differs from the reference, and no near-tie explains it"
            if where
            else "passed: no lossless mode differs from its reference"
        )


def _table(checks: Sequence[Check]) -> str:
    """A table with a row for each precision and mode, and a column for each way to make batches."""
    in_order = sorted(checks, key=lambda check: (check.shuffled, check.batch_size))
    columns = list(dict.fromkeys(check.batches for check in in_order))
    names = ["precision", "mode"] if checks[0].to_the_bit else ["precision", "mode", "reference"]
    rows: dict[tuple[str, ...], dict[str, Check]] = {}
    for check in checks:
        rows.setdefault(tuple(getattr(check, name) for name in names), {})[check.batches] = check
    cells = [
        [*key, *(_cell(row[column]) if column in row else "" for column in columns), _accepted(list(row.values()))]
        for key, row in rows.items()
    ]
    return text_table([*names, *columns, "accepted of drafted"], cells, TERMINAL)


def _cell(check: Check) -> str:
    parts = [f"{check.identical} of {check.sentences}"]
    if check.near_ties:
        parts.append(f"{check.near_ties} near-tie{'s' * (check.near_ties > 1)}")
    if check.differing:
        parts.append(f"{check.differing} DIFFER" if check.lossless else f"{check.differing} differ (not lossless)")
    return ", ".join(parts)


def _accepted(checks: Sequence[Check]) -> str:
    """Acceptance rate over all batch sizes."""
    if any(check.drafted is None for check in checks):
        return ""
    drafted, accepted = sum(check.drafted or 0 for check in checks), sum(check.accepted or 0 for check in checks)
    return f"{accepted / max(1, drafted):.0%} of {drafted:,}"
