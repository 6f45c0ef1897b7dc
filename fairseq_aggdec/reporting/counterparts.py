"""Which of an experiment's measurements stands for which entry of a paper's table: configs/EXPERIMENT/tables.yaml.

    score: [m2-references]        # metrics of aggdec score that the tables need beside those of prepare.yaml
    tables:
      000/5:
        set: test                 # decoded test set whose scores count, and the file of aggdec bench: the defaults of
        record: bench/bench       # all entries; a row's or a column's own word comes before them
        greedy: AR verifier (beam = 1)
        beam: AR verifier (beam = 5)
        ours: k = 10               # what is to be said above the table
        differs: 4+3 layers of 256 # in what our systems are not the paper's, beside each row; a row may say its own
        columns: {Iter.: iterations, EN-DE: sacrebleu, Speed: speed-up}
        rows: {GAD (k = 25): gad}

A row is a label of scripts/decode.sh, which is the mode of aggdec bench too (`gad++-3-1` is `gad++:3:1`), a column a
measure; each may be a mapping of the fields of `Source` instead: a row's come before a column's, `only` names the
columns that a row has, `measures` those whose measure it changes. `{...}` in a field stands for another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.reporting.paper_tables import PaperTable, paper_table
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
    k: str = ""
    """for names of files: a number, such as the block size, or a part of a label"""

    def filled(self) -> Source:
        """Every `{field}` replaced by that field."""
        given = {name: str(getattr(self, name)) for name in ("label", "set", "record", "k", "mode")}
        given["record"] = given["record"].format(**given)
        given["label"] = given["label"].format(**given)
        texts = {name: getattr(self, name).format(**given) for name in ("label", "record", "mode", "over")}
        return replace(self, **texts, over_record=self.over_record.format(**given | texts))


@dataclass(frozen=True)
class Counterparts:
    """Those of one table."""

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
class Tables:
    """What an experiment's `FILE` says."""

    score: tuple[str, ...] = ()
    """metrics beside those of its prepare.yaml"""
    counterparts: dict[str, Counterparts] = field(default_factory=dict)
    """by table"""


def read_tables(folder: Path) -> Tables:
    """Reads an experiment's `FILE`; without one, there are no tables.

    Raises:
        AggdecError: it names a table, row, column or field that does not exist.
    """
    path = folder / FILE
    if not path.is_file():
        return Tables()
    content = read_yaml(path)
    try:
        tables = {name: _counterparts(paper_table(name), entry) for name, entry in content["tables"].items()}
    except AggdecError as error:
        raise AggdecError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AggdecError(f"{path}: not as the head of {Path(__file__).name} describes it ({error!r})") from error
    return Tables(tuple(content.get("score", ())), tables)


def _counterparts(table: PaperTable, entry: Mapping[str, Any]) -> Counterparts:
    special = {"columns", "rows", "greedy", "beam", "ours", "differs"}
    defaults = _fields({name: value for name, value in entry.items() if name not in special})
    columns = {table.column(name).name: _short(given, "measure") for name, given in entry["columns"].items()}
    named = {role: table.system(entry[role]) for role in ("greedy", "beam") if role in entry}
    sources, differs = {}, {}
    for system, given in entry["rows"].items():
        row: dict[str, Any] = dict(given) if isinstance(given, dict) else {"label": str(given)}
        only, measures = row.pop("only", columns), row.pop("measures", {})
        differs[table.system(system)] = str(row.pop("differs", entry.get("differs", "")))
        for column in [*only, *measures]:
            table.column(column)
        for column, of_column in columns.items():
            if column in only:
                changed = {"measure": measures[column]} if column in measures else {}
                fields_of = defaults | of_column | _fields(row) | changed
                sources[table.system(system), column] = Source(**fields_of).filled()
    return Counterparts(table, sources, named.get("greedy"), named.get("beam"), entry.get("ours", ""), differs)


def _short(given: Any, name: str) -> dict[str, Any]:
    return _fields(given if isinstance(given, dict) else {name: str(given)})


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    if odd := set(given) - {entry.name for entry in fields(Source)}:
        known = ", ".join(entry.name for entry in fields(Source))
        raise AggdecError(f"unknown fields {', '.join(sorted(odd))}: choose from {known}")
    made = {name: str(value) if name == "k" else value for name, value in given.items()}
    return made | {"modules": tuple(made["modules"])} if "modules" in made else made
