"""Makes tables with an experiment's numbers beside those of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairseq_aggdec.lab.benchmarking.machine import describe
from fairseq_aggdec.lab.benchmarking.record import Record
from fairseq_aggdec.lab.grid import DASH, Grid, Group
from fairseq_aggdec.lab.reporting.counterparts import Counterparts, Source
from fairseq_aggdec.lab.reporting.measures import value
from fairseq_aggdec.lab.reporting.paper_tables import Column, PaperTable, Value
from fairseq_aggdec.lab.reporting.results import Results

_BESIDE = ("paper", "ours", "ratio")

Numbers = dict[tuple[str, str], float]
"""measured numbers by system and column of a paper's table"""


def numbers_of(results: Results, counterparts: Counterparts) -> Numbers:
    """The measured numbers for the entries of a paper's table."""
    found = {place: value(results, source) for place, source in counterparts.sources.items()}
    return {place: number for place, number in found.items() if number is not None}


def paper_grid(table: PaperTable) -> Grid:
    """A paper's table without other numbers."""
    groups = tuple(Group(_heading(column), ("",)) for column in table.columns)
    rows = tuple(
        (system, *(column.text(entry) for column, entry in zip(table.columns, values, strict=True)))
        for system, values in table.rows.items()
    )
    return Grid(_label(table, "paper"), _title(table), "system", groups, rows, (f"{table.setting}.",))


def side_by_side(counterparts: Counterparts, numbers: Numbers) -> Grid:
    """A paper's table with our numbers and the ratios beside the paper's, for the columns that have any of ours.

    The other columns have the paper's numbers alone. The last column says how our systems differ from the paper's.
    """
    table = counterparts.table
    measured, ours_there = {column for _, column in numbers}, {system for system, _ in numbers}
    differs = {system: text for system, text in counterparts.differs.items() if text and system in ours_there}
    groups = [Group(_heading(c), _BESIDE if c.name in measured else ("paper",)) for c in table.columns]
    rows = []
    for system, values in table.rows.items():
        row = [system]
        for column, entry in zip(table.columns, values, strict=True):
            row.append(column.text(entry))
            if column.name in measured:
                number = numbers.get((system, column.name))
                row += [column.measured(number), _ratio(number, entry)]
        rows.append((*row, differs.get(system, "")) if differs else tuple(row))
    if differs:
        groups.append(Group("ours differs in", ("",)))
    ours = f"Ours: {counterparts.ours}. " if counterparts.ours else ""
    notes = (f"Paper: {table.setting}. {ours}Ratio: ours over the paper's.",)
    return Grid(_label(table, "beside"), _title(table), "system", tuple(groups), tuple(rows), notes)


def changes(counterparts: Counterparts, numbers: Numbers) -> Grid | None:
    """How much each system's scores differ from those of greedy decoding and of beam search, in the paper and here.

    It has only systems and columns that were measured; None if there is nothing to compare.
    """
    table = counterparts.table
    baselines = [(name, row) for name, row in (("greedy", counterparts.greedy), ("beam", counterparts.beam)) if row]
    columns = [c for c in table.columns if c.quality and any((row, c.name) in numbers for _, row in baselines)]
    systems = [s for s in table.rows if any((s, column.name) in numbers for column in columns)]
    if len(systems) < 2:
        return None
    groups = []
    cells: dict[str, list[str]] = {system: [] for system in systems}
    for column in columns:
        for name, row in baselines:
            groups.append(Group(f"{_heading(column)} against {name}", ("paper", "ours")))
            for system in systems:
                papers = (table.value(system, column.name), table.value(row, column.name))
                ours = (numbers.get((system, column.name)), numbers.get((row, column.name)))
                cells[system] += [_change(column, *papers), _change(column, *ours)]
    rows = tuple((system, *cells[system]) for system in systems)
    title = f"{_title(table).partition(':')[0]}: change of quality"
    compared = ", ".join(f"{name}: {row}" for name, row in baselines)
    return Grid(_label(table, "change"), title, "system", tuple(groups), rows, (f"Compared with {compared}.",))


def header(results: Results, used: Sequence[Source]) -> list[str]:
    """The lines above an experiment's tables: differences from the papers, sizes of the test sets, and machines.

    Args:
        results: the experiment's results.
        used: the sources of the numbers in the tables.
    """
    if results.stand_in:
        differs = (
            f"{results.experiment} is a stand-in: other data and smaller models than the papers'. Iterations and "
            "changes of quality can be compared with theirs; scores and seconds cannot. Speed-ups over fairseq's "
            "search contain what this plugin's engine gains without drafts."
        )
    else:
        differs = f"{results.experiment} has the papers' data and model sizes; the machine may differ from theirs."
    lines = [f"{results.title}. {differs}"]
    sets = {source.set for source in used}
    scored = [table for table in results.scores if table["subset"] in sets]
    sizes = ", ".join(f"{table['test_set']}: {table['sentences']} sentences" for table in scored)
    if sizes:
        lines.append(
            f"Scores are of whole test sets ({sizes}); iterations and tokens too where their counters were kept, "
            "otherwise of the sentences that were timed."
        )
    for machine, timed in _by_machine(_records(results, used)).items():
        sizes = "; ".join(f"{size}: {', '.join(names)}" for size, names in timed.items())
        lines.append(f"Times ({sizes}): {machine}.")
    return lines


def commands(results: Results, used: Sequence[Source] | None = None) -> list[str]:
    """The commands that made the numbers of `used`, or all numbers if it is None."""
    decodings, records = results.decodings, results.records
    if used is not None:
        decoded = {(source.set, source.label) for source in used}
        decodings = [entry for entry in decodings if (entry.subset, entry.label) in decoded]
        records = _records(results, used)
    made = [entry.command for entry in decodings if entry.command] + [record.command for record in records.values()]
    return [*dict.fromkeys([*made, results.command])]


def sources_of(results: Results, wanted: Sequence[Counterparts]) -> list[Source]:
    """The sources of all measured numbers in these tables."""
    return [counterparts.sources[place] for counterparts in wanted for place in numbers_of(results, counterparts)]


def _records(results: Results, used: Sequence[Source]) -> dict[str, Record]:
    names = {name for source in used for name in (source.record, source.over_record)}
    return {name: record for name, record in results.records.items() if name in names}


def _by_machine(records: Mapping[str, Record]) -> dict[str, dict[str, list[str]]]:
    """Names of records by machine and by number of timed inputs."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, record in records.items():
        timed = found.setdefault(describe(record.machine), {})
        timed.setdefault(f"{len(record.source_tokens)} inputs", []).append(name)
    return found


def _heading(column: Column) -> str:
    return column.name if column.unit == column.name else f"{column.name} ({column.unit})"


def _title(table: PaperTable) -> str:
    return f"{table.paper}, Table {table.name.partition('/')[2]}: {table.shows}"


def _label(table: PaperTable, kind: str) -> str:
    return f"{table.name.replace('/', '-')}-{kind}"


def _ratio(ours: float | None, papers: Value) -> str:
    comparable = ours is not None and isinstance(papers, int | float) and papers
    return f"{ours / papers:.2f}" if comparable else DASH  # type: ignore[operator]


def _change(column: Column, one: Value, other: Value) -> str:
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return DASH
    text = f"{one - other:+.{column.digits}f}"
    return text.replace("-", "−")


def beside_grids(results: Results, wanted: Sequence[Counterparts]) -> tuple[list[Grid], list[str]]:
    """All tables, each followed by its changes of quality, and the names of tables without a measured number."""
    grids: list[Grid] = []
    missing = []
    for counterparts in wanted:
        numbers = numbers_of(results, counterparts)
        if not numbers:
            missing.append(counterparts.table.name)
            continue
        found = changes(counterparts, numbers)
        grids += [side_by_side(counterparts, numbers), *([found] if found is not None else [])]
    return grids, missing
