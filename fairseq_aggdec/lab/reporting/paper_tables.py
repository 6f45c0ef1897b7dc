"""The numbers of the papers' tables, from `papers/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.grid import DASH
from fairseq_aggdec.structured_files import read_yaml

FOLDER = Path(__file__).parent / "papers"

Value = float | str | None
"""a number, `EVERY_TOKEN`, or nothing where the paper has none"""
EVERY_TOKEN = "N"
"""as many iterations as the output has tokens"""


@dataclass(frozen=True)
class Column:
    """A column of a paper's table."""

    name: str
    """the paper's heading"""
    unit: str
    digits: int
    """decimals, as printed"""
    quality: bool = False
    """a score that decoding may change: the change against greedy decoding and beam search is worth a look"""

    def measured(self, number: float | None) -> str:
        """A number of ours, with the paper's decimals; one more where that would leave one or two digits."""
        if number is None:
            return DASH
        return f"{number:.{1 if self.digits == 0 and abs(number) < 100 else self.digits}f}"

    def text(self, value: Value) -> str:
        """A value as the paper prints it; a dash for nothing."""
        if value is None:
            return DASH
        return f"{value:.{self.digits}f}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper."""

    name: str
    """paper and number: `ge2022/5`"""
    paper: str
    """as it is cited: Ge et al. 2022"""
    shows: str
    setting: str
    """of the measurement: machine, batch size, what speed-ups compare with"""
    columns: tuple[Column, ...]
    rows: dict[str, tuple[Value, ...]]
    """by system; a value each column"""

    def value(self, system: str, column: str) -> Value:
        """A single entry.

        Raises:
            AggdecError: there is no such row or column.
        """
        return self.rows[self.system(system)][self.columns.index(self.column(column))]

    def column(self, name: str) -> Column:
        """A column by its heading.

        Raises:
            AggdecError: there is none.
        """
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise AggdecError(f"table {self.name} has no column {name!r}: {', '.join(c.name for c in self.columns)}")
        return found

    def system(self, name: str) -> str:
        """The name itself.

        Raises:
            AggdecError: there is no row of it.
        """
        if name not in self.rows:
            raise AggdecError(f"table {self.name} has no row {name!r}: {', '.join(self.rows)}")
        return name


@cache
def all_tables() -> dict[str, PaperTable]:
    """Every table by its name."""
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
        AggdecError: there is none.
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
