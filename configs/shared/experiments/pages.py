"""`aggdec report`: an experiment's numbers beside the papers', or further tables of it, with machines and commands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

from experiments.about import read_about
from experiments.experiment_tables import TABLES, Cell, ExperimentTable
from experiments.measures import MEASURES
from experiments.papers import all_tables, paper_table
from experiments.results import Results
from experiments.tables import Beside, Grid, paper_tables
from experiments.yaml_files import read_yaml
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.machine import describe
from fairseq_aggdec.lab.bench.record import Record
from fairseq_aggdec.lab.verify.references import refuse_differing


def papers_text(names: Sequence[str], form: str) -> str:
    """Tables of the papers alone, in a form of `lab.grid`; without names, the list of all."""
    if not names:
        return "".join(
            f"{table.name:<13}{table.shows}\n" for table in all_tables().values()
        )
    tables = (Beside(paper_table(name)).grid().text(form) for name in names)
    return "\n\n".join(tables) + "\n"


def experiment_text(
    config: Path,
    work: Path,
    data: Path,
    table: str | None,
    figures: Sequence[Path],
    command: str,
    form: str,
) -> str:
    """The page of an experiment.

    Args:
        config: its folder in configs/.
        work: its work folder.
        data: the folder of the data sets.
        table: only this table, of the papers or a further one; None for all of the papers.
        figures: files of the figures of a further table, which are drawn.
        command: the command that is running.
        form: form of the tables, see `lab.grid`.

    Raises:
        AggdecError: there is no such table, nothing has been measured yet, or a file cannot be used.
    """
    declared = read_yaml(config / "tables.yaml")
    further = [*declared.get("tables", []), "examples"]
    if figures and table not in further:
        raise AggdecError(f"--figure needs --table with one of {', '.join(further)}")
    if not work.is_dir():
        raise AggdecError(
            f"--work {work}: no such folder; run the experiment's stages first"
        )
    results = Results(config, work, data, tuple(declared.get("metrics", ())))
    if table is not None and table in further:
        tables = TABLES[table](results)
        title, lines, grids = _further_page(results, table, tables)
        page = _page(results, title, lines, grids, command, form)
        _write_figures(tables, figures)
        return page
    # the papers' tables, and again those that were measured in half precision
    known = [*declared.get("papers", {})]
    if table and table not in known:
        has = ", ".join([*further, *known])
        raise AggdecError(
            f"--table {table}: no such table in {config}/tables.yaml; it has {has}"
        )
    papers = [
        paper
        for paper in paper_tables(results, declared)
        if table in (None, paper.table.name)
    ]
    if not results.used:
        raise AggdecError(
            f"{work}: nothing is decoded or measured there yet; run the experiment's stages first{_looked_for(results)}"
        )
    half = replace(results, ending="-fp16")
    for paper in paper_tables(half, declared):
        if paper.measured and table in (None, paper.table.name):
            remark = paper.remark and f"; {paper.remark}"
            papers.append(replace(paper, remark=f"in half precision{remark}"))
    lines = _lines_beside(results, papers)
    grids = [
        grid
        for paper in papers
        if paper.measured
        for grid in (paper.grid(), paper.changes())
        if grid
    ]
    return _page(
        results, f"{config.name} beside the papers", lines, grids, command, form
    )


def _looked_for(results: Results) -> str:
    """The records that are missing, as the end of an error message."""
    names = ", ".join(results.missing)
    names = textwrap.shorten(names, 150, placeholder=" ...", break_on_hyphens=False)
    return names and f", or name a record as it is looked for: {names}"


def _lines_beside(results: Results, papers: Sequence[Beside]) -> list[str]:
    """What is said above tables of the papers; those without a measured number are only named."""
    name = results.config.name
    about = read_about(results.config)
    # what the numbers are of
    differs = shortened(results.work)
    if not about.full_size:
        differs = (
            f"{name} is a stand-in: other data and smaller models than the papers'. Iterations and changes of quality "
            f"can be compared with theirs; scores and seconds cannot. {differs}"
        )
    elif not differs:
        differs = f"{name} has the papers' data and model sizes; the machine may differ from theirs."
    lines = [f"{about.title}. {differs}".strip()]
    if any(
        measure == "speed_up" and place.over.startswith("beam")
        for place, measure in results.used
    ):
        lines[0] += (
            " Speed-ups over fairseq's search contain what this plugin's engine gains without drafts: rows by `greedy` "
            "have that part alone."
        )
    # the test sets, `valid` first
    used = {place.set for place, _ in results.used}
    subsets = sorted(used, key=lambda subset: (subset != "valid", subset))
    sets = filter(None, map(results.test_set, subsets))
    if sizes := ", ".join(f"{test}: {size} sentences" for test, size in sets):
        lines.append(
            f"Scores are of all that was decoded ({sizes}); iterations and tokens too where their counters were kept, "
            "otherwise of the sentences that were timed."
        )
    # the machines
    machines: dict[str, dict[str, list[str]]] = {}
    for record_name, record in _records(results).items():
        timed = machines.setdefault(describe(record.machine), {})
        timed.setdefault(f"{record.sentences} inputs", []).append(record_name)
    for machine, timed in machines.items():
        parts = "; ".join(f"{size}: {', '.join(of)}" for size, of in timed.items())
        lines.append(f"Times ({parts}): {machine}.")
    if missing := [paper.table.name for paper in papers if not paper.measured]:
        lines.append(f"Nothing has been measured yet of {', '.join(missing)}.")
    return lines


def shortened(work: Path) -> str:
    """What of an experiment was made with settings that shorten it, by the settings; empty where all is whole."""
    made: dict[str, list[str]] = {}
    for mark in sorted(work.rglob("*.shortened")):  # of scripts/stage.sh
        result = mark.with_suffix("")
        if result.exists():
            settings = mark.read_text().strip()
            made.setdefault(settings, []).append(str(result.relative_to(work)))
    said = "; ".join(f"{settings} of {', '.join(of)}" for settings, of in made.items())
    return (
        said
        and f"Shortened, not the papers' training or not all of their sentences: {said}."
    )


def _further_page(
    results: Results, name: str, tables: Sequence[ExperimentTable]
) -> tuple[str, list[str], list[Grid]]:
    """Title, lines and tables of what an experiment declares under one name.

    Raises:
        AggdecError: none of their numbers was measured.
    """
    grids = [grid for table in tables if (grid := table.grid())]
    experiment = results.config.name
    if not grids:
        raise AggdecError(
            f"{name}: nothing of it has been measured yet; run its stage of {experiment} first{_looked_for(results)}"
        )
    parts = []
    # the sentences of scores
    scored = dict.fromkeys(
        place.set for place, measure in results.used if measure not in MEASURES
    )
    tests = filter(None, map(results.test_set, scored))
    if counts := "/".join(str(size) for _, size in tests):
        parts.append(f"Scores of {counts} sentences")
    # the sentences and machines of times
    runs = [place.timed for place, _ in results.used if place.timed]
    if runs:
        timed = "/".join(dict.fromkeys(str(run.counts.sentences) for run in runs))
        first = f"times of the first {timed} of them"
        times = first if counts else f"Times of {timed} inputs"
        names = dict.fromkeys(place.record for place, _ in results.used)
        records = filter(None, map(results.record, names))
        machines = dict.fromkeys(describe(record.machine) for record in records)
        parts += [f"{times}, batch size 1", " / ".join(machines)]
    lines = [f"{'; '.join(parts)}."] if parts else []
    lines += filter(None, [shortened(results.work)])
    return f"{experiment}: {name}", lines, grids


def _write_figures(tables: Sequence[ExperimentTable], files: Sequence[Path]) -> None:
    """Draw the first tables that declare a figure, in their order.

    Raises:
        AggdecError: fewer tables declare a figure.
    """
    drawn = [table for table in tables if table.figure]
    if len(files) > len(drawn):
        raise AggdecError(
            f"{files[len(drawn)]}: the table declares {len(drawn)} figures only"
        )
    for table, file in zip(drawn, files, strict=False):
        _draw(table, file)


def _draw(table: ExperimentTable, path: Path) -> None:
    """Draw a table with `figure`: points of one kind for each column, one point for each row."""
    from matplotlib.figure import Figure

    from fairseq_aggdec.lab.bench.figures import save

    assert table.figure is not None
    y_label, x_label = table.figure
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    for number, (column, marker) in enumerate(
        zip(table.columns, cycle("os^D"), strict=False)
    ):
        # a point for each row that has both numbers, with its name
        style: dict[str, Any] = {"color": f"C{number}", "marker": marker}
        for row, cells in table.rows.items():
            y, x = cells.get(column, Cell()).numbers or (None, None)
            if x is None or y is None:
                continue
            axes.plot([x], [y], markersize=5, **style)
            axes.annotate(
                row,
                (x, y),
                textcoords="offset points",
                xytext=(5, 3),
                fontsize=6,
                color=f"C{number}",
            )
        # the column's name in the legend
        if len(table.columns) > 1:
            axes.plot([], [], linestyle="none", label=column, **style)
            axes.legend(frameon=False)
    axes.margins(0.12)  # room for the names
    save(figure, path)


def _records(results: Results) -> dict[str, Record]:
    """The records of all numbers that were shown, in the order of their files."""
    records = {}
    for place, _ in results.used:
        for name in filter(None, (place.record, place.over_record)):
            if record := place.results.record(name):
                records[f"{name}{place.results.ending}"] = record
    order = sorted(records, key=lambda name: (name.count("/"), name.split("/")))
    return {name: records[name] for name in order}


def _page(
    results: Results,
    title: str,
    lines: Sequence[str],
    grids: Sequence[Grid],
    command: str,
    form: str,
) -> str:
    """The page, with the commands that made its numbers; refuses other outputs of lossless modes."""
    faulty = {}
    decodings = {}
    for place, _ in results.used:
        ending = place.results.ending
        if run := place.timed:
            mode = f"{place.record}{ending}, {place.mode or place.label}"
            faulty[mode] = run.counts.differing
        if place.decoding:
            decodings[place.set, f"{place.label}{ending}"] = place.decoding.command
    refuse_differing([mode for mode, differing in faulty.items() if differing])
    # the commands that made the outputs, the records and this page
    made = [decodings[output] for output in sorted(decodings)]
    made += [record.command for record in _records(results).values()]
    commands = dict.fromkeys(map(results.relative, filter(None, [*made, command])))
    tables = [grid.text(form) for grid in grids]
    if "latex" in form:
        head = "\n".join(f"% {line}" for line in [title, *lines, *commands])
        return "\n\n".join([head, *tables]) + "\n"
    listed = "\n".join(["```", *commands, "```"])
    parts = [f"# {title}", *lines, *tables, f"## Commands\n\n{listed}"]
    return "\n\n".join(parts) + "\n"
