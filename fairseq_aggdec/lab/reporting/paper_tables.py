"""Reads the numbers of the papers' tables from `papers/*.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.grid import DASH
from fairseq_aggdec.structured_files import read_yaml

FOLDER = Path(__file__).parent / "papers"

Value = float | str | None
"""a number, `EVERY_TOKEN`, or None where the paper has no entry"""
EVERY_TOKEN = "N"
"""the entry for one iteration for each output token"""


@dataclass(frozen=True)
class Column:
    """A column of a paper's table."""

    name: str
    """the heading in the paper"""
    unit: str
    digits: int
    """number of decimals in the paper"""
    quality: bool = False
    """whether it is a score, for which the change against greedy decoding and beam search is shown"""

    def measured(self, number: float | None) -> str:
        """Our number with as many decimals as the paper's; below 100, with at least one. A dash for None."""
        if number is None:
            return DASH
        return f"{number:.{1 if self.digits == 0 and abs(number) < 100 else self.digits}f}"

    def text(self, value: Value) -> str:
        """A value as the paper prints it; a dash for None."""
        if value is None:
            return DASH
        return f"{value:.{self.digits}f}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper."""

    name: str
    """paper and number, such as `ge2022/5`"""
    paper: str
    """citation, such as Ge et al. 2022"""
    shows: str
    """subject of the table"""
    setting: str
    """how the paper measured: machine, batch size, baseline of speed-ups"""
    columns: tuple[Column, ...]
    rows: dict[str, tuple[Value, ...]]
    """values of the columns, by system"""

    def value(self, system: str, column: str) -> Value:
        """The value of a system in a column.

        Raises:
            AggdecError: there is no such row or column.
        """
        return self.rows[self.system(system)][self.columns.index(self.column(column))]

    def column(self, name: str) -> Column:
        """A column by its heading.

        Raises:
            AggdecError: there is no such column.
        """
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise AggdecError(f"table {self.name} has no column {name!r}: {', '.join(c.name for c in self.columns)}")
        return found

    def system(self, name: str) -> str:
        """Check the name of a system, and return it.

        Raises:
            AggdecError: there is no such row.
        """
        if name not in self.rows:
            raise AggdecError(f"table {self.name} has no row {name!r}: {', '.join(self.rows)}")
        return name

    def with_further(self, compared: Mapping[str, str]) -> PaperTable:
        """The table with further rows, each with the values of the system that it is compared with, and below that one.

        Args:
            compared: the paper's system for each further row, by its name.

        Raises:
            AggdecError: the paper has no such system, or has the further row itself.
        """
        for name, system in compared.items():
            if name in self.rows:
                raise AggdecError(f"table {self.name} has the row {name!r} itself: remove its `of`, or rename it")
            self.system(system)
        rows: dict[str, tuple[Value, ...]] = {}
        for system, values in self.rows.items():
            rows[system] = values
            rows |= {name: values for name, other in compared.items() if other == system}
        return replace(self, rows=rows)


@cache
def all_tables() -> dict[str, PaperTable]:
    """All tables by name."""
    found = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        content = read_yaml(path)
        for number, entry in content["tables"].items():
            table = _table(f"{path.stem}/{number}", content["cited"], entry)
            found[table.name] = table
    return found


def paper_table(name: str) -> PaperTable:
    """A table by its name, such as `ge2022/5`.

    Raises:
        AggdecError: there is no such table.
    """
    if name not in all_tables():
        raise AggdecError(f"no table {name} of the papers is known: choose from {', '.join(all_tables())}")
    return all_tables()[name]


def _table(name: str, paper: str, entry: dict[str, Any]) -> PaperTable:
    columns = tuple(Column(**column) for column in entry["columns"])
    rows = {system: tuple(values) for system, values in entry["rows"].items()}
    for system, values in rows.items():
        if len(values) != len(columns):
            raise AggdecError(f"table {name}, {system}: {len(values)} values for {len(columns)} columns")
    return PaperTable(name, paper, entry["shows"], entry["setting"], columns, rows)
