"""Reads the numbers of the papers' tables, and what of ours stands beside each, from `papers/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.yaml_files import read_yaml
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.grid import DASH

Value = float | str | None
"""a number; `N` for as many iterations as output tokens; None where the paper has no entry"""


@dataclass(frozen=True)
class Column:
    """A column of a paper's table."""

    name: str
    """the heading in the paper"""
    unit: str
    digits: int
    """count of decimals in the paper"""
    quality: bool = False
    """whether it is a score, for which the change against greedy decoding and beam search is shown"""

    @property
    def heading(self) -> str:
        """The name with the unit."""
        return self.name if self.unit == self.name else f"{self.name} ({self.unit})"

    def measured(self, value: float | None) -> str:
        """Our value with as many decimals as the paper's; below 100, with at least one. A dash for None."""
        if value is None:
            return DASH
        digits = 1 if self.digits == 0 and abs(value) < 100 else self.digits
        return f"{value:.{digits}f}"

    def printed(self, value: Value) -> str:
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
    rows: dict[str, dict[str, Value]]
    """values by system and by the name of the column"""
    ours: dict[str, Any]
    """where our numbers come from, see experiments/tables.py"""

    @property
    def title(self) -> str:
        """Paper and number of the table."""
        return f"{self.paper}, Table {self.name.partition('/')[2]}"


@cache
def all_tables() -> dict[str, PaperTable]:
    """All tables by name."""
    tables = {}
    for path in sorted((Path(__file__).parent / "papers").glob("*.yaml")):
        content = read_yaml(path)
        for number, entry in content["tables"].items():
            name = f"{path.stem}/{number}"
            columns = tuple(Column(**column) for column in entry["columns"])
            names = [column.name for column in columns]
            rows = {
                system: dict(zip(names, values, strict=True))
                for system, values in entry["rows"].items()
            }
            tables[name] = PaperTable(
                name,
                content["cited"],
                entry["shows"],
                entry["setting"],
                columns,
                rows,
                entry.get("ours", {}),
            )
    return tables


def paper_table(name: str) -> PaperTable:
    """A table by its name, such as `ge2022/5`.

    Raises:
        AggdecError: there is no such table.
    """
    if name not in all_tables():
        known = ", ".join(all_tables())
        raise AggdecError(
            f"no table {name} of the papers is known: choose from {known}"
        )
    return all_tables()[name]
