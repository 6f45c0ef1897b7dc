"""Reads configs/EXPERIMENT/tables.yaml, which says what measurement stands in each cell of an experiment's tables.

    score: [m2-references]        # metrics of aggdec score that the tables need beside those of prepare.py
    tables:                       # tables of the papers
      ge2022/5:
        set: test                 # defaults of all cells, which a row or a column may replace: the decoded test set
        record: bench/bench       # with the scores, and the file of aggdec bench
        greedy: AR verifier (beam = 1)
        beam: AR verifier (beam = 5)
        ours: k = 10               # a remark about our numbers, printed above the table
        differs: 4+3 layers of 256 # how our systems differ from the paper's, printed in each row; a row may replace it
        columns: {Iter.: iterations, EN-DE: sacrebleu, Speed: speed-up}
        rows:
          GAD (k = 25): gad
          GAD with another drafter: {label: other-gad, of: GAD (k = 25)} # a further system of ours
    own:                          # tables without a counterpart in a paper, lists by name
      ablation: tatoeba_en_de     # the list of this name in another experiment
      blocks:
        - title: Speed-up over greedy decoding (mean accepted block)
          first: k                # heading of the rows' names
          axes: {k: [2, 4, 8]}    # a row named "{k}" stands for three rows
          measure: [speed-up, accepted block]
          form: "{:.2f}x ({:.2f})" # format of a cell; by default, two decimals for each number
          figure: [speed-up, mean accepted block] # labels of the y and x axis, for --figure
          columns: {regular: {record: "blocks/regular-{k}"}}
          rows: {"{k}": blockwise}

The value of a row is a label of scripts/decode.sh, which also names the mode of aggdec bench (`gad++-3-1` is
`gad++:3:1`); the value of a column is a measure. Either may be a mapping of the fields of `Source` instead; fields of a
row replace those of a column. In a row's mapping, `only` lists the columns that the row has, and `measures` gives
another measure for some columns; a row that the paper does not have names in `of` the paper's system it is compared
with. `{name}` in a field stands for another field, or for the row's value of an axis: the one in the row's name or
fields, or else the axis's first value. `{first[k]}` is always the first value of `k`. An axis `a-b` has values such as
`6-3`: 6 for `a`, 3 for `b`. Every table has an axis `k`. Of rows with the same name, the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.reporting.paper_tables import PaperTable, paper_table
from fairseq_aggdec.structured_files import read_yaml

FILE = "tables.yaml"


@dataclass(frozen=True)
class Source:
    """Where a number comes from. Not every measure needs all fields."""

    measure: str = ""
    """a column of aggdec score, or a name of `measures.MEASURES`"""
    label: str = ""
    """label of the decoded output"""
    set: str = "test"
    """fairseq's name of the test set"""
    record: str = "bench/bench"
    """file of aggdec bench in the work folder, without suffix"""
    mode: str = "{label}"
    """mode in that file"""
    batch_size: int = 1
    over: str = "beam5"
    """baseline of a speed-up: a mode, or for `decoding speed-up` a label"""
    over_record: str = "{record}"
    """file with the baseline"""
    modules: tuple[str, ...] = ()
    """modules whose time counts; empty for all"""
    training: str = ""
    """folder of a drafter's training in the work folder"""
    beside: tuple[str, ...] = ()
    """the trainings in the same table"""

    def filled(self, values: Mapping[str, Any] = MappingProxyType({})) -> Source:
        """The source with each `{name}` replaced by the field, or the value of the axis, of that name."""
        given = {**values, **{name: str(getattr(self, name)) for name in ("label", "set", "record", "mode")}}
        for name in ("set", "record", "label"):
            given[name] = given[name].format(**given)
        names = ("set", "label", "record", "mode", "over", "training")
        texts = {name: getattr(self, name).format(**given) for name in names}
        return replace(self, **texts, over_record=self.over_record.format(**given | texts))


@dataclass(frozen=True)
class Counterparts:
    """The sources of our numbers for one table of a paper."""

    table: PaperTable
    sources: dict[tuple[str, str], Source]
    """sources by system and column"""
    greedy: str | None = None
    """the system with greedy decoding, for changes of quality"""
    beam: str | None = None
    """the system with beam search, for changes of quality"""
    ours: str = ""
    """a remark about our numbers; may be empty"""
    differs: Mapping[str, str] = field(default_factory=dict)
    """how our system differs from the paper's, by system"""


@dataclass(frozen=True)
class Cell:
    """A cell with one or several numbers."""

    sources: tuple[Source, ...]
    form: str
    """format of the numbers, for `str.format`"""


@dataclass(frozen=True)
class OwnTable:
    """A table without a counterpart in a paper."""

    title: str
    first: str
    """heading of the first column, which has the rows' names"""
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    """cells by row and column"""
    axes: tuple[str, ...]
    """names of the axes"""
    figure: tuple[str, ...] = ()
    """labels of the y and x axis if the table can be drawn: a cell has two numbers then"""


@dataclass(frozen=True)
class Tables:
    """The content of an experiment's `FILE`."""

    score: tuple[str, ...] = ()
    """metrics to compute beside those of prepare.py"""
    counterparts: dict[str, Counterparts] = field(default_factory=dict)
    """counterparts by the name of the paper's table"""
    own: dict[str, list[OwnTable]] = field(default_factory=dict)
    """tables without a counterpart, by name"""


def read_tables(folder: Path, axes: Mapping[str, Sequence[str]] | None = None) -> Tables:
    """Reads an experiment's `FILE`; an experiment without one has no tables.

    Args:
        folder: the experiment's folder in configs/.
        axes: values of axes that replace those in the file, for tables without a counterpart.

    Raises:
        AggdecError: the file names a table, row, column or field that does not exist.
    """
    path = folder / FILE
    if not path.is_file():
        return Tables()
    content = read_yaml(path)
    try:
        tables = {name: _counterparts(paper_table(name), entry) for name, entry in content["tables"].items()}
        own = {}
        for name, entries in content.get("own", {}).items():
            if isinstance(entries, str):
                entries = read_yaml(folder.parent / entries / FILE)["own"][name]
            own[name] = [_own_table(entry, axes or {}) for entry in entries]
    except AggdecError as error:
        raise AggdecError(f"{path}: {error}") from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise AggdecError(f"{path}: not as the head of {Path(__file__).name} describes it ({error!r})") from error
    return Tables(tuple(content.get("score", ())), tables, own)


@dataclass(frozen=True)
class _Row:
    """A row of `FILE`."""

    name: str
    given: dict[str, Any]
    """the fields of `Source` that it sets, `only`, `measures`, `of` and `differs`"""
    values: dict[str, Any]
    """values of the axes"""

    def only(self, columns: Mapping[str, Any]) -> list[str]:
        """The columns that the row has."""
        only = self.given.get("only", columns)
        if odd := [column for column in [*only, *self.given.get("measures", {})] if column not in columns]:
            raise AggdecError(f"row {self.name!r}: there is no column {odd[0]!r}: {', '.join(columns)}")
        return [column for column in columns if column in only]

    def fields(self, defaults: Mapping[str, Any], column: str, of_column: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a cell: defaults, replaced by those of the column, then by those of the row."""
        own = {name: value for name, value in self.given.items() if name not in ("only", "measures", "of", "differs")}
        measures = self.given.get("measures", {})
        return {**defaults, **of_column, **own, **({"measure": measures[column]} if column in measures else {})}


def _rows(entry: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> Iterator[_Row]:
    """The rows of a table; a row whose name has an axis stands for one row for each value."""
    first = _values(axes, [values[0] for values in axes.values()])
    for name, given in entry["rows"].items():
        row = dict(given) if isinstance(given, dict) else {"label": str(given)}
        own = {axis: row.pop(axis) for axis in axes if axis in row}
        swept = [
            values if any(f"{{{part}}}" in str(name) for part in axis.split("-")) else [own.get(axis, values[0])]
            for axis, values in axes.items()
        ]
        for choice in product(*swept):
            values = {**_values(axes, choice), "first": first}
            yield _Row(str(name).format(**values), row, values)


def _values(axes: Mapping[str, Sequence[Any]], choice: Sequence[Any]) -> dict[str, Any]:
    """The values of the axes; an axis `a-b` gives a value of `a` and one of `b`."""
    found: dict[str, str] = {}
    for axis, value in zip(axes, choice, strict=True):
        names, parts = axis.split("-"), str(value).split("-", axis.count("-"))
        if len(parts) < len(names):
            raise AggdecError(f"axis {axis}: {value} is not {len(names)} values joined by '-'")
        found |= zip(names, parts, strict=True)
    return found


def _counterparts(table: PaperTable, entry: Mapping[str, Any]) -> Counterparts:
    defaults = _without(entry, "axes", "columns", "rows", "greedy", "beam", "ours", "differs")
    columns = {table.column(name).name: _column_fields(given) for name, given in entry["columns"].items()}
    named = {role: table.system(entry[role]) for role in ("greedy", "beam") if role in entry}
    rows = list(_rows(entry, {"k": [""], **entry.get("axes", {})}))
    table = table.with_further({row.name: row.given["of"] for row in rows if "of" in row.given})
    sources, differs = {}, {}
    for row in rows:
        differs[table.system(row.name)] = str(row.given.get("differs", entry.get("differs", "")))
        for column in row.only(columns):
            given = row.fields(defaults, column, columns[column])
            sources[row.name, column] = _source(given, row.values)
    return Counterparts(table, sources, named.get("greedy"), named.get("beam"), entry.get("ours", ""), differs)


def _own_table(entry: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]) -> OwnTable:
    defaults = _without(entry, "axes", "columns", "rows", "title", "first", "figure")
    axes = {"k": [""], **entry.get("axes", {})}
    axes |= {axis: values for axis, values in chosen.items() if axis in axes}
    rows = list(_rows(entry, axes))
    columns = {str(name).format(**rows[0].values): _column_fields(given) for name, given in entry["columns"].items()}
    cells: dict[tuple[str, str], Cell] = {}
    for row in rows:
        for column in row.only(columns):
            given = row.fields(defaults, column, columns[column])
            measures = [given["measure"]] if isinstance(given["measure"], str) else given["measure"]
            form = given.pop("form", " / ".join("{:.2f}" for _ in measures))
            sources = tuple(_source({**given, "measure": measure}, row.values) for measure in measures)
            cells.setdefault((row.name, column), Cell(sources, form))
    beside = tuple(dict.fromkeys(source.training for cell in cells.values() for source in cell.sources))
    cells = {
        place: replace(cell, sources=tuple(replace(source, beside=beside) for source in cell.sources))
        for place, cell in cells.items()
    }
    return OwnTable(entry["title"], entry["first"], tuple(columns), cells, tuple(axes), tuple(entry.get("figure", ())))


def _without(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def _column_fields(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"measure": str(given)}


def _source(given: Mapping[str, Any], values: Mapping[str, Any]) -> Source:
    if odd := given.keys() - {entry.name for entry in fields(Source)}:
        known = ", ".join(entry.name for entry in fields(Source))
        raise AggdecError(f"unknown fields {', '.join(sorted(odd))}: choose from {known}")
    return Source(**given).filled(values)
