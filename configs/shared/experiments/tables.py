"""Tables of an experiment, which `configs/EXPERIMENT/tables.py` builds of plain numbers.

That file defines `papers`, and may define the others:

    METRICS = ["m2-references"]         # metrics of aggdec score beside those of prepare.py
    def papers(results): ...            # list of `beside(...)`: tables of the papers with our numbers in them
    OWN = {"depth": function}           # further tables by name; function(results) -> list of `Own`

where a number is `results.at("gad", set="test").get(speed_up)` and a row `results.at("gad").row({"Speed": speed_up})`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.measures import speed_up
from experiments.papers import Column, PaperTable, Value, paper_table
from experiments.results import Measure, Place, Row
from fairseq_aggdec.lab.grid import DASH, text_table

Numbers = Mapping[str, float | None]
"""numbers of a row by column"""


@dataclass(frozen=True)
class Grid:
    """A table of texts under a title."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """sentences above the table"""
    numbers: bool = True
    """whether all columns but the first are numbers, aligned to the right"""

    def text(self, form: str) -> str:
        """The title, the note and the table; `form` is one of `grid`."""
        title = f"% {self.title}" if "latex" in form else f"## {self.title}"
        note = f"% {self.note}" if self.note and "latex" in form else self.note
        table = text_table(self.headers, self.rows, form, numbers=self.numbers)
        return "\n\n".join(filter(None, [title, note, table]))


@dataclass(frozen=True)
class Beside:
    """A paper's table and our numbers in it."""

    table: PaperTable
    numbers: Mapping[str, Numbers]
    """ours, by system and column"""
    ours: str = ""
    """a remark about our numbers"""
    differs: Mapping[str, str] = field(default_factory=dict)
    """how our system differs from the paper's, by system"""
    greedy: str | None = None
    """the system with greedy decoding, for changes of quality"""
    beam: str | None = None
    """the system with beam search, for changes of quality"""
    further: Mapping[str, str] = field(default_factory=dict)
    """for a system of ours that the paper does not have, the paper's system that it is compared with"""

    def number(self, system: str, column: str) -> float | None:
        """Our number; None if it was not measured."""
        return self.numbers.get(system, {}).get(column)

    @property
    def rows(self) -> dict[str, dict[str, Value]]:
        """The paper's values by system; a further system follows the one it is compared with."""
        rows = {}
        for system, values in self.table.rows.items():
            rows[system] = values
            rows |= {
                name: values for name, other in self.further.items() if other == system
            }
        return rows

    @property
    def measured(self) -> list[tuple[str, str]]:
        """Systems and columns of our numbers."""
        return [
            (s, c)
            for s, row in self.numbers.items()
            for c, number in row.items()
            if number is not None
        ]

    def grid(self) -> Grid:
        """The paper's table; a column that we measured has our numbers and the ratios beside the paper's.

        The last column says how our systems differ from the paper's.
        """
        ours_there, columns_there = (
            {system for system, _ in self.measured},
            {column for _, column in self.measured},
        )
        differs = {
            system: text
            for system, text in self.differs.items()
            if text and system in ours_there
        }
        headers = ["system"]
        for column in self.table.columns:
            headers.append(
                f"{column.heading}, paper" if self.measured else column.heading
            )
            headers += ["ours", "ratio"] if column.name in columns_there else []
        rows = []
        for system, values in self.rows.items():
            row = [system]
            for column in self.table.columns:
                row.append(column.text(values[column.name]))
                if column.name in columns_there:
                    number = self.number(system, column.name)
                    row += [
                        column.measured(number),
                        _ratio(number, values[column.name]),
                    ]
            rows.append([*row, differs.get(system, "")] if differs else row)
        ours = f"Ours: {self.ours}. " if self.ours else ""
        note = f"Paper: {self.table.setting}. {ours}Ratio: ours over the paper's."
        quoted = [
            system
            for system in self.table.rows
            if system not in {*self.numbers, *self.further.values()}
        ]
        if quoted:
            note += f" Not run in this experiment, but quoted from the paper: {'; '.join(quoted)}."
        if not self.measured:
            note = f"{self.table.setting}."
        headers += ["ours differs in"] if differs else []
        return Grid(f"{self.table.title}: {self.table.shows}", headers, rows, note)

    def changes(self) -> Grid | None:
        """How much scores differ from those of greedy decoding and of beam search, in the paper and here.

        It has only systems and columns that were measured; None if there is nothing to compare.
        """
        baselines = [
            (name, row)
            for name, row in (("greedy", self.greedy), ("beam", self.beam))
            if row
        ]
        columns = [
            column
            for column in self.table.columns
            if column.quality
            and any(self.number(row, column.name) is not None for _, row in baselines)
        ]
        systems = [
            s
            for s in self.rows
            if any(self.number(s, column.name) is not None for column in columns)
        ]
        if len(systems) < 2:
            return None
        headers, rows = ["system"], {system: [system] for system in systems}
        for column in columns:
            for name, baseline in baselines:
                headers += [f"{column.heading} against {name}, paper", "ours"]
                for system in systems:
                    papers = (
                        self.rows[system][column.name],
                        self.rows[baseline][column.name],
                    )
                    ours = (
                        self.number(system, column.name),
                        self.number(baseline, column.name),
                    )
                    rows[system] += [_change(column, *papers), _change(column, *ours)]
        note = (
            f"Compared with {', '.join(f'{name}: {row}' for name, row in baselines)}."
        )
        return Grid(
            f"{self.table.title}: change of quality", headers, list(rows.values()), note
        )


def beside(
    name: str,
    rows: Mapping[str, Numbers],
    differs: str = "",
    but: Mapping[str, str] | None = None,
    further: Mapping[str, str] | None = None,
    **more: Any,
) -> Beside:
    """Our numbers in a paper's table.

    Below a row with speed-ups of fairseq's beam of 1 stands one of this plugin's `greedy`, if that was timed: what the
    engine gains without drafts.

    Args:
        name: the table, such as `ge2022/5`.
        rows: our numbers by the paper's system and column.
        differs: how our systems differ from the paper's.
        but: the same of systems that differ otherwise.
        further: see `Beside`.
        more: further fields of `Beside`.

    Raises:
        AggdecError: the paper's table lacks a row or a column.
    """
    table, rows, further = paper_table(name), dict(rows), dict(further or {})
    said = {system: (but or {}).get(system, differs) for system in rows}
    for system, row in [*rows.items()]:
        if speed_ups := _by_engine(row):
            ours = f"{system}, by `greedy`"
            rows[ours] = speed_ups
            further[ours] = system
            said[ours] = said[system]
    for system, numbers in rows.items():
        table.check("row", further.get(system, system))
        for column in numbers:
            table.check("column", column)
    return Beside(table, rows, differs=said, further=further, **more)


@dataclass(frozen=True)
class Cell:
    """Numbers that stand in one cell."""

    numbers: tuple[float | None, ...]
    form: str
    """format of the numbers, for `str.format`"""

    def text(self) -> str:
        """The numbers; a dash for those that were not measured."""
        if all(number is None for number in self.numbers):
            return DASH
        return self.form.format(
            *(_NotMeasured() if number is None else number for number in self.numbers)
        )


def cell(place: Place, *measures: Measure, form: str = "") -> Cell:
    """A cell with these numbers of a place; without `form`, each with two decimals."""
    return Cell(
        tuple(map(place.get, measures)), form or " / ".join("{:.2f}" for _ in measures)
    )


@dataclass(frozen=True)
class Own:
    """A table without a counterpart in a paper."""

    title: str
    first: str
    """heading of the first column, which has the rows' names"""
    rows: Mapping[str, Mapping[str, Cell]]
    """cells by row and column"""
    figure: tuple[str, str] | None = None
    """labels of the y and x axis if the table can be drawn: each cell has two numbers then"""

    @property
    def columns(self) -> list[str]:
        """The columns in the order in which rows name them."""
        return list(
            dict.fromkeys(column for row in self.rows.values() for column in row)
        )

    def grid(self) -> Grid | None:
        """The rows that have a measured number; None if there are none."""
        columns = self.columns
        rows = [
            [name, *(row[c].text() if c in row else DASH for c in columns)]
            for name, row in self.rows.items()
        ]
        rows = [row for row in rows if any(text != DASH for text in row[1:])]
        return (
            Grid(self.title, [self.first, *columns], rows, numbers=False)
            if rows
            else None
        )


def _by_engine(row: Numbers) -> Numbers:
    """The speed-ups of `greedy` in the place of a row of fairseq's beam of 1; none for other rows."""
    if not isinstance(row, Row) or (row.place.mode or row.place.label) != "beam1":
        return {}
    found = row.place.at(mode="greedy").row(
        {c: measure for c, measure in row.columns.items() if measure is speed_up}
    )
    return found if any(found.values()) else {}


class _NotMeasured:
    """A missing number of a cell, which prints as a dash in any format."""

    def __format__(self, form: str) -> str:
        return DASH


def _ratio(ours: float | None, papers: Value) -> str:
    return (
        f"{ours / papers:.2f}"
        if ours is not None and isinstance(papers, int | float) and papers
        else DASH
    )


def _change(column: Column, one: Value, other: Value) -> str:
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return DASH
    return f"{one - other:+.{column.digits}f}".replace("-", "−")
