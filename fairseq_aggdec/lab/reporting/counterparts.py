"""Which of an experiment's measurements stands where in a table: configs/EXPERIMENT/tables.yaml.

    score: [m2-references]        # metrics of aggdec score that the tables need beside those of prepare.yaml
    tables:                       # of the papers
      ge2022/5:
        set: test                 # decoded test set whose scores count, and the file of aggdec bench: the defaults of
        record: bench/bench       # all entries; a row's or a column's own word comes before them
        greedy: AR verifier (beam = 1)
        beam: AR verifier (beam = 5)
        ours: k = 10               # what is to be said above the table
        differs: 4+3 layers of 256 # in what our systems are not the paper's, beside each row; a row may say its own
        columns: {Iter.: iterations, EN-DE: sacrebleu, Speed: speed-up}
        rows: {GAD (k = 25): gad}
    own:                          # without a counterpart; a name stands for several tables, or for those of this name
      ablation: tatoeba_en_de     # of another experiment
      blocks:
        - title: Speed-up over greedy decoding (mean accepted block)
          first: k                # heading of the rows' names
          axes: {k: [2, 4, 8]}    # a row named "{k}" stands for three
          measure: [speed-up, accepted block]
          form: "{:.2f}x ({:.2f})" # of a cell; without it, its numbers have two decimals
          figure: [speed-up, mean accepted block] # names of the two numbers, for --figure; a line each column
          columns: {regular: {record: "blocks/regular-{k}"}}
          rows: {"{k}": blockwise}

A row is a label of scripts/decode.sh, which is the mode of aggdec bench too (`gad++-3-1` is `gad++:3:1`), a column a
measure; each may be a mapping of the fields of `Source` instead: a row's come before a column's, `only` names the
columns that a row has, `measures` those whose measure it changes. `{...}` in a field stands for another one, or for the
row's value of an axis, which is the axis's first one where neither the row's name nor its fields say another;
`{first[k]}` is always the first. The values of an axis `a-b` such as `6-3` are one of `a` and one of `b`. Every table
has an axis `k`. Of rows with the same name the first one counts.
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
    """Where a number comes from; empty fields are not needed for every measure."""

    measure: str = ""
    """a column of aggdec score, or a name of `measures.MEASURES`"""
    label: str = ""
    """of the decoded output"""
    set: str = "test"
    """fairseq's name of the test set"""
    record: str = "bench/bench"
    """of aggdec bench, in the work folder without suffix"""
    mode: str = "{label}"
    batch_size: int = 1
    over: str = "beam5"
    """the mode that a speed-up compares with; of `decoding speed-up` the label"""
    over_record: str = "{record}"
    modules: tuple[str, ...] = ()
    """whose time counts; none: of all"""
    training: str = ""
    """folder of a drafter's training, in the work folder"""
    beside: tuple[str, ...] = ()
    """the trainings of the same table"""

    def filled(self, values: Mapping[str, Any] = MappingProxyType({})) -> Source:
        """Every `{field}` replaced by that field, or by the value of that axis."""
        given = {**values, **{name: str(getattr(self, name)) for name in ("label", "set", "record", "mode")}}
        for name in ("set", "record", "label"):
            given[name] = given[name].format(**given)
        names = ("set", "label", "record", "mode", "over", "training")
        texts = {name: getattr(self, name).format(**given) for name in names}
        return replace(self, **texts, over_record=self.over_record.format(**given | texts))


@dataclass(frozen=True)
class Counterparts:
    """Those of one table of a paper."""

    table: PaperTable
    sources: dict[tuple[str, str], Source]
    """by system and column"""
    greedy: str | None = None
    """the system that decodes greedily, for changes of quality"""
    beam: str | None = None
    """and the one with beam search"""
    ours: str = ""
    """what our numbers are of, where that needs saying"""
    differs: Mapping[str, str] = field(default_factory=dict)
    """in what our system is not the paper's, by the paper's system"""


@dataclass(frozen=True)
class Cell:
    """Several numbers in one place."""

    sources: tuple[Source, ...]
    form: str
    """for `str.format`"""


@dataclass(frozen=True)
class OwnTable:
    """A table without a counterpart in a paper."""

    title: str
    first: str
    """heading of the rows' names"""
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    """by row and column"""
    axes: tuple[str, ...]
    figure: tuple[str, ...] = ()
    """what a cell's two numbers are, where they are drawn one against the other"""


@dataclass(frozen=True)
class Tables:
    """What an experiment's `FILE` says."""

    score: tuple[str, ...] = ()
    """metrics beside those of its prepare.yaml"""
    counterparts: dict[str, Counterparts] = field(default_factory=dict)
    """by table"""
    own: dict[str, list[OwnTable]] = field(default_factory=dict)


def read_tables(folder: Path, axes: Mapping[str, Sequence[str]] | None = None) -> Tables:
    """Reads an experiment's `FILE`; without one, there are no tables.

    Args:
        folder: of configs/.
        axes: other values of axes, for its own tables.

    Raises:
        AggdecError: it names a table, row, column or field that does not exist.
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
    """A row with all that it says."""

    name: str
    given: dict[str, Any]
    """fields of `Source`, and what only one kind of table knows"""
    values: dict[str, Any]
    """of the axes"""

    def only(self, columns: Mapping[str, Any]) -> list[str]:
        """The columns that it has."""
        only = self.given.get("only", columns)
        if odd := [column for column in [*only, *self.given.get("measures", {})] if column not in columns]:
            raise AggdecError(f"row {self.name!r}: there is no column {odd[0]!r}: {', '.join(columns)}")
        return [column for column in columns if column in only]

    def fields(self, defaults: Mapping[str, Any], column: str, of_column: Mapping[str, Any]) -> dict[str, Any]:
        """What is said of a cell: a row's word comes before a column's."""
        own = {name: value for name, value in self.given.items() if name not in ("only", "measures", "differs")}
        measures = self.given.get("measures", {})
        return {**defaults, **of_column, **own, **({"measure": measures[column]} if column in measures else {})}


def _rows(entry: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> Iterator[_Row]:
    """A row each value of the axes that its name holds."""
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
    """What the axes' names stand for: an axis `a-b` has one value of `a` and one of `b`."""
    found: dict[str, str] = {}
    for axis, value in zip(axes, choice, strict=True):
        names, parts = axis.split("-"), str(value).split("-", axis.count("-"))
        if len(parts) < len(names):
            raise AggdecError(f"axis {axis}: {value} is not {len(names)} values joined by '-'")
        found |= zip(names, parts, strict=True)
    return found


def _counterparts(table: PaperTable, entry: Mapping[str, Any]) -> Counterparts:
    defaults = _besides(entry, "axes", "columns", "rows", "greedy", "beam", "ours", "differs")
    columns = {table.column(name).name: _of_column(given) for name, given in entry["columns"].items()}
    named = {role: table.system(entry[role]) for role in ("greedy", "beam") if role in entry}
    sources, differs = {}, {}
    for row in _rows(entry, {"k": [""], **entry.get("axes", {})}):
        differs[table.system(row.name)] = str(row.given.get("differs", entry.get("differs", "")))
        for column in row.only(columns):
            said = row.fields(defaults, column, columns[column])
            sources[row.name, column] = _source(said, row.values)
    return Counterparts(table, sources, named.get("greedy"), named.get("beam"), entry.get("ours", ""), differs)


def _own_table(entry: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]) -> OwnTable:
    defaults = _besides(entry, "axes", "columns", "rows", "title", "first", "figure")
    axes = {"k": [""], **entry.get("axes", {})}
    axes |= {axis: values for axis, values in chosen.items() if axis in axes}
    rows = list(_rows(entry, axes))
    columns = {str(name).format(**rows[0].values): _of_column(given) for name, given in entry["columns"].items()}
    cells: dict[tuple[str, str], Cell] = {}
    for row in rows:
        for column in row.only(columns):
            said = row.fields(defaults, column, columns[column])
            measures = [said["measure"]] if isinstance(said["measure"], str) else said["measure"]
            form = said.pop("form", " / ".join("{:.2f}" for _ in measures))
            sources = tuple(_source({**said, "measure": measure}, row.values) for measure in measures)
            cells.setdefault((row.name, column), Cell(sources, form))
    beside = tuple(dict.fromkeys(source.training for cell in cells.values() for source in cell.sources))
    cells = {
        place: replace(cell, sources=tuple(replace(source, beside=beside) for source in cell.sources))
        for place, cell in cells.items()
    }
    return OwnTable(entry["title"], entry["first"], tuple(columns), cells, tuple(axes), tuple(entry.get("figure", ())))


def _besides(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def _of_column(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"measure": str(given)}


def _source(said: Mapping[str, Any], values: Mapping[str, Any]) -> Source:
    if odd := said.keys() - {entry.name for entry in fields(Source)}:
        known = ", ".join(entry.name for entry in fields(Source))
        raise AggdecError(f"unknown fields {', '.join(sorted(odd))}: choose from {known}")
    return Source(**said).filled(values)
