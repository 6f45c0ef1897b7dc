"""The papers' tables with an experiment's numbers in them.

Where our numbers come from is data: the entry `ours` of a paper's table in `papers/*.yaml`, and what an experiment
changes of it in its `tables.yaml`, under `every_table` and under the table's name in `papers`:

    columns: {Speed: speed_up, ...}    a measure for each column of the paper; an experiment lists the columns it has
    rows: {GAD (k = 25): gad, ...}     a mode for each row, or fields; null: the experiment does not have the row
    greedy, beam                       the rows that changes of quality are against
    remark                             what is said of our numbers
    label, set, record, mode, ...      fields of a `Place`; `label` is the mode unless it is given

A field of a row wins over that of its column, and that over one of the table. A row can also have `only`, the columns
that it has; `differs`, how it differs from the paper's; and `like`, the paper's row that it is compared with where the
paper does not have it. A text may have another field in braces: `record: bench/block-size-{k}`, with k from the row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from experiments.measures import measured
from experiments.papers import Column, PaperTable, Value, all_tables, paper_table
from experiments.results import Place, Results
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.grid import DASH, text_table

Fields = Mapping[str, Any]


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
        """The title, the note and the table; `form` is one of `lab.grid`."""
        comment = "% " if "latex" in form else ""
        title = f"{comment or '## '}{self.title}"
        note = self.note and f"{comment}{self.note}"
        table = text_table(self.headers, self.rows, form, numbers=self.numbers)
        return "\n\n".join(filter(None, [title, note, table]))


@dataclass
class Beside:
    """A paper's table and our numbers in it."""

    table: PaperTable
    remark: str = ""
    """what is said of our numbers"""
    greedy: str = ""
    """the system with greedy decoding, for changes of quality"""
    beam: str = ""
    """the system with beam search, for changes of quality"""
    numbers: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """ours, by system and column"""
    differs: dict[str, str] = field(default_factory=dict)
    """how our system differs from the paper's, by system"""
    like: dict[str, str] = field(default_factory=dict)
    """for a system of ours that the paper does not have, the paper's system that it is compared with"""

    def add(
        self, system: str, numbers: dict[str, float | None], differs: str, like: str
    ) -> None:
        """Add our numbers of a system, by column.

        Raises:
            AggdecError: the paper's table lacks the system or a column.
        """
        columns = [column.name for column in self.table.columns]
        for what, name, names in (
            ("row", like or system, [*self.table.rows]),
            *(("column", column, columns) for column in numbers),
        ):
            if name not in names:
                raise AggdecError(
                    f"table {self.table.name} has no {what} {name!r}: {', '.join(names)}"
                )
        self.numbers[system] = numbers
        self.differs[system] = differs
        if like:
            self.like[system] = like

    def number(self, system: str, column: str) -> float | None:
        """Our number; None if it was not measured."""
        return self.numbers.get(system, {}).get(column)

    @property
    def rows(self) -> dict[str, dict[str, Value]]:
        """The paper's values by system; a system that it does not have follows the one it is compared with."""
        rows = {}
        for system, values in self.table.rows.items():
            rows[system] = values
            for name, other in self.like.items():
                if other == system:
                    rows[name] = values
        return rows

    @property
    def measured(self) -> list[tuple[str, str]]:
        """Systems and columns of our numbers."""
        return [
            (system, column)
            for system, row in self.numbers.items()
            for column, number in row.items()
            if number is not None
        ]

    def grid(self) -> Grid:
        """The paper's table; a column that we measured has our numbers and the ratios beside the paper's.

        The last column says how our systems differ from the paper's.
        """
        systems = {system for system, _ in self.measured}
        columns = {column for _, column in self.measured}
        differs = {s: text for s, text in self.differs.items() if text and s in systems}
        # the headings
        headers = ["system"]
        for column in self.table.columns:
            paper = ", paper" if self.measured else ""
            headers.append(f"{column.heading}{paper}")
            headers += ["ours", "ratio"] if column.name in columns else []
        headers += ["ours differs in"] if differs else []
        # the rows
        rows = []
        for system, values in self.rows.items():
            row = [system]
            for column in self.table.columns:
                value = values[column.name]
                row.append(column.printed(value))
                if column.name in columns:
                    number = self.number(system, column.name)
                    row += [column.measured(number), _ratio(number, value)]
            rows.append([*row, differs.get(system, "")] if differs else row)
        title = f"{self.table.title}: {self.table.shows}"
        return Grid(title, headers, rows, self._note())

    def _note(self) -> str:
        if not self.measured:
            return f"{self.table.setting}."
        note = f"Paper: {self.table.setting}. "
        note += f"Ours: {self.remark}. " if self.remark else ""
        note += "Ratio: ours over the paper's."
        ours = {*self.numbers, *self.like.values()}
        if quoted := [system for system in self.table.rows if system not in ours]:
            note += f" Not run in this experiment, but quoted from the paper: {'; '.join(quoted)}."
        return note

    def changes(self) -> Grid | None:
        """How much scores differ from those of greedy decoding and of beam search, in the paper and here.

        It has only systems and columns that were measured; None if there is nothing to compare.
        """
        baselines = {"greedy": self.greedy, "beam": self.beam}
        baselines = {name: system for name, system in baselines.items() if system}
        # what was measured
        columns = [
            column
            for column in self.table.columns
            if column.quality
            and any(
                self.number(system, column.name) is not None
                for system in baselines.values()
            )
        ]
        systems = [
            system
            for system in self.rows
            if any(self.number(system, column.name) is not None for column in columns)
        ]
        if len(systems) < 2:
            return None
        # each change in the paper and here
        headers = ["system"]
        rows = {system: [system] for system in systems}
        for column in columns:
            for name, baseline in baselines.items():
                headers += [f"{column.heading} against {name}, paper", "ours"]
                for system in systems:
                    for values in (self.rows, self.numbers):
                        here = values.get(system, {}).get(column.name)
                        there = values.get(baseline, {}).get(column.name)
                        rows[system].append(_change(column, here, there))
        compared = ", ".join(f"{name}: {row}" for name, row in baselines.items())
        return Grid(
            f"{self.table.title}: change of quality",
            headers,
            list(rows.values()),
            f"Compared with {compared}.",
        )


def paper_tables(results: Results, declared: Fields) -> list[Beside]:
    """The papers' tables that an experiment's `tables.yaml` declares, with its numbers.

    Raises:
        AggdecError: nothing reads a field of the file, or a paper's table lacks a row or a column.
    """
    _check(results, declared)
    every = declared.get("every_table", {})
    return [
        beside(name, results, {**every, **changes})
        for name, changes in declared.get("papers", {}).items()
    ]


def beside(name: str, results: Results, changes: Fields) -> Beside:
    """A paper's table with our numbers.

    Below a row with speed-ups of fairseq's beam of 1 stands one of this plugin's `greedy`, if that was timed: what the
    engine gains without drafts.

    Args:
        name: the table, such as `ge2022/5`.
        results: of the experiment.
        changes: what the experiment says of the table.

    Raises:
        AggdecError: the paper's table lacks a row or a column, or nothing reads a field.
    """
    table = paper_table(name)
    said = {**_NOTHING_SAID, "targets": results.targets("drafter")}
    said |= {**table.ours, **changes}
    # the experiment's columns
    columns = _named("measure", table.ours.get("columns", {}))
    chosen = _named("measure", changes.get("columns", columns))
    columns = {
        column: {**columns.get(column, {}), **fields}
        for column, fields in chosen.items()
    }
    # the experiment's rows
    rows = _named("mode", table.ours.get("rows", {}))
    for system, fields in changes.get("rows", {}).items():
        if fields is None:
            rows.pop(system, None)
        else:
            rows[system] = {**rows.get(system, {}), **_fields("mode", fields)}
    _check(results, changes, *columns.values(), *rows.values())

    def text(template: str) -> str:
        return template.format_map(said)

    filled = Beside(
        table,
        remark=text(said["remark"]),
        greedy=text(said["greedy"]),
        beam=text(said["beam"]),
    )
    for template, row in rows.items():
        system = text(template)
        cells = {
            column: _cell(results, {**said, **fields, **row})
            for column, fields in columns.items()
            if column in row.get("only", columns)
        }
        numbers = {column: measured(*cell) for column, cell in cells.items()}
        differs = text(row.get("differs", said["differs"]))
        like = row.get("like", "")
        filled.add(system, numbers, differs, like)
        # what the engine gains without drafts
        places = {place for place, _ in cells.values()}
        if [place.mode for place in places] == ["beam1"]:
            engine = {
                column: measured(place.at(mode="greedy"), measure)
                for column, (place, measure) in cells.items()
                if measure == "speed_up"
            }
            if any(engine.values()):
                filled.add(f"{system}, by `greedy`", engine, differs, like or system)
    return filled


_FIELDS = (
    "tables metrics every_table papers columns rows only like label set record mode over over_record modules measure"
).split()
_NOTHING_SAID = dict.fromkeys(("remark", "greedy", "beam", "differs", "verifier"), "")


def _check(results: Results, *entries: Fields) -> None:
    """Raise `AggdecError` for a field that nothing reads: it is not known, and no text has it in braces."""
    in_braces = re.findall(r"{(\w+)}", f"{all_tables()}{entries}")
    known = {*_FIELDS, *_NOTHING_SAID, *in_braces}
    for key in set().union(*entries) - known:
        (nearest,) = get_close_matches(key, known, 1, cutoff=0)
        raise AggdecError(
            f"{results.config}/tables.yaml: {key}: nothing reads it; the nearest field is {nearest}"
        )


def _named(name: str, entries: Fields) -> dict[str, Any]:
    return {entry: _fields(name, fields) for entry, fields in entries.items()}


def _fields(name: str, fields: Any) -> Fields:
    """The fields of a row or column, for which one text may stand."""
    return {name: fields} if isinstance(fields, str) else fields or {}


def _cell(results: Results, fields: Fields) -> tuple[Place, str]:
    """The place and the measure that the fields of a cell say."""
    mode = fields.get("mode", "").format_map(fields)
    said = {"label": mode, **fields, "mode": mode}
    texts = {
        name: said[name].format_map(said)
        for name in ("label", "set", "record", "over", "over_record", "measure")
        if name in said
    }
    measure = texts.pop("measure")
    modules = tuple(fields.get("modules", ()))
    return Place(results, mode=mode, modules=modules, **texts), measure


def _ratio(ours: float | None, paper: Value) -> str:
    if ours is None or not isinstance(paper, int | float) or not paper:
        return DASH
    return f"{ours / paper:.2f}"


def _change(column: Column, one: Value, other: Value) -> str:
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return DASH
    return f"{one - other:+.{column.digits}f}".replace("-", "−")
