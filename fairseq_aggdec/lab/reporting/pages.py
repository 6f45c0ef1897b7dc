"""Pages of tables: an experiment's numbers beside the papers', or its own tables, with machines and commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.machine import describe
from fairseq_aggdec.lab.bench.record import Record
from fairseq_aggdec.lab.reporting.measures import Score
from fairseq_aggdec.lab.reporting.results import Results
from fairseq_aggdec.lab.reporting.tables import Beside, Grid, Own
from fairseq_aggdec.lab.verify.references import refuse_differing


def beside_page(results: Results, title: str, stand_in: bool, tables: Sequence[Beside], command: str, form: str) -> str:
    """Tables of the papers with our numbers, each followed by its changes of quality.

    Args:
        results: what the numbers were looked up in.
        title: title of the experiment.
        stand_in: whether the experiment has other data than the papers.
        tables: the tables; those without a measured number are only named.
        command: the command that is running.
        form: form of the tables, see `grid`.
    """
    grids = [grid for table in tables if table.measured for grid in (table.grid(), table.changes()) if grid]
    name = results.config.name
    if stand_in:
        differs = (
            f"{name} is a stand-in: other data and smaller models than the papers'. Iterations and changes of quality "
            "can be compared with theirs; scores and seconds cannot. Speed-ups over fairseq's search contain what this "
            "plugin's engine gains without drafts."
        )
    else:
        differs = f"{name} has the papers' data and model sizes; the machine may differ from theirs."
    lines = [f"{title}. {differs}"]
    sets = [
        found
        for subset in sorted({place.set for place, _ in results.used}, key=_order_of_sets)
        if (found := results.test_set(subset))
    ]
    if sets:
        sizes = ", ".join(f"{test}: {size} sentences" for test, size in sets)
        lines.append(
            f"Scores are of whole test sets ({sizes}); iterations and tokens too where their counters were kept, "
            "otherwise of the sentences that were timed."
        )
    machines: dict[str, dict[str, list[str]]] = {}
    for record_name, record in _records(results).items():
        timed = machines.setdefault(describe(record.machine), {})
        timed.setdefault(f"{record.sentences} inputs", []).append(record_name)
    for machine, timed in machines.items():
        sizes = "; ".join(f"{size}: {', '.join(names)}" for size, names in timed.items())
        lines.append(f"Times ({sizes}): {machine}.")
    if missing := [table.table.name for table in tables if not table.measured]:
        lines.append(f"Nothing has been measured yet of {', '.join(missing)}.")
    return _page(results, f"{name} beside the papers", lines, grids, command, form)


def own_page(results: Results, name: str, tables: Sequence[Own], command: str, form: str) -> str:
    """The tables that an experiment declares under one name.

    Raises:
        AggdecError: none of their numbers was measured.
    """
    grids = [grid for table in tables if (grid := table.grid()) is not None]
    if not grids:
        raise AggdecError(f"{name}: nothing of it has been measured yet; run its stage of {results.config.name} first")
    parts = []
    scored = dict.fromkeys(place.set for place, measure in results.used if isinstance(measure, Score))
    if counts := "/".join(str(test[1]) for subset in scored if (test := results.test_set(subset))):
        parts.append(f"Scores of {counts} sentences")
    if runs := [run for place, _ in results.used if (run := place.run) is not None]:
        timed = "/".join(dict.fromkeys(str(run.sentences) for run in runs))
        parts.append(f"times of the first {timed} of them" if counts else f"Times of {timed} inputs")
        parts[-1] += ", batch size 1"
        names = dict.fromkeys(place.record for place, _ in results.used)
        found = (record for record in map(results.record, names) if record is not None)
        parts.append(" / ".join(dict.fromkeys(describe(record.machine) for record in found)))
    return _page(results, f"{results.config.name}: {name}", [f"{'; '.join(parts)}."], grids, command, form)


def write_figures(tables: Sequence[Own], files: Sequence[Path]) -> None:
    """Draw the first tables that declare a figure, in their order.

    Raises:
        AggdecError: fewer tables declare a figure.
    """
    from fairseq_aggdec.lab.reporting.figure import draw

    drawn = [table for table in tables if table.figure]
    if len(files) > len(drawn):
        raise AggdecError(f"{files[len(drawn)]}: the table declares {len(drawn)} figures only")
    for table, file in zip(drawn, files, strict=False):
        draw(table, file)


def _records(results: Results) -> dict[str, Record]:
    """The records of all numbers that were found, in the order of their files."""
    names = {name for place, _ in results.used for name in (place.record, place.over_record) if name}
    found = {name: results.record(name) for name in sorted(names, key=lambda name: (name.count("/"), name.split("/")))}
    return {name: record for name, record in found.items() if record is not None}


def _order_of_sets(subset: str) -> tuple[int, str]:
    return (0 if subset == "valid" else 1, subset)


def _page(results: Results, title: str, lines: Sequence[str], grids: Sequence[Grid], command: str, form: str) -> str:
    """The page, with the commands that made its numbers; refuses other outputs of lossless modes."""
    runs = {f"{place.record}, {place.mode or place.label}": place.run for place, _ in results.used}
    refuse_differing({name: run.differing or 0 for name, run in runs.items() if run is not None})
    outputs = sorted({(place.set, place.label) for place, _ in results.used})
    decodings = [found.command for output in outputs if (found := results.decoding(*output)) and found.command]
    made = [*decodings, *(record.command for record in _records(results).values()), command]
    listed = [*dict.fromkeys(map(results.relative, made))]
    tables = [grid.text(form) for grid in grids]
    if "latex" in form:
        return "\n\n".join(["\n".join(f"% {line}" for line in [title, *lines, *listed]), *tables]) + "\n"
    commands = "\n".join(["```", *listed, "```"])
    return "\n\n".join([f"# {title}", *lines, *tables, f"## Commands\n\n{commands}"]) + "\n"
