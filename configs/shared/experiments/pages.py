"""`aggdec report`: an experiment's numbers beside the papers', or its own tables, with machines and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from experiments.about import read_about
from experiments.common_tables import examples
from experiments.experiment import load_module
from experiments.measures import Score, speed_up
from experiments.papers import all_tables
from experiments.results import Results
from experiments.tables import Beside, Grid, Own, beside
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
    return "\n\n".join(beside(name, {}).grid().text(form) for name in names) + "\n"


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
        table: only this table, of the papers or of the experiment's own; None for all of the papers.
        figures: files of the figures of an own table, which are drawn.
        command: the command that is running.
        form: form of the tables, see `lab.grid`.

    Raises:
        AggdecError: there is no such table, nothing has been measured yet, or a file cannot be used.
    """
    declared = load_module(config / "tables.py")
    own = getattr(declared, "OWN", {}) | {"examples": examples}
    if figures and table not in own:
        raise AggdecError(
            f"--figure needs --table with one of {', '.join(own) or 'no table here'}"
        )
    if not work.is_dir():
        raise AggdecError(
            f"--work {work}: no such folder; run the experiment's stages first"
        )
    results = Results(config, work, data, tuple(getattr(declared, "METRICS", ())))
    if table in own:
        tables = own[table](results)
        page = _own_page(results, str(table), tables, command, form)
        _write_figures(tables, figures)
        return page
    papers = declared.papers(results)
    if table:
        known = [paper.table.name for paper in papers]
        if table not in known:
            has = ", ".join([*own, *known])
            raise AggdecError(
                f"--table {table}: no such table in {config}/tables.py; it has {has}"
            )
        papers = [papers[known.index(table)]]
    if not results.used:
        raise AggdecError(
            f"{work}: nothing is decoded or measured there yet; run the experiment's stages first"
        )
    about = read_about(config)
    half = replace(results, ending="-fp16")
    named = {paper.table.name for paper in papers}
    papers += [
        replace(paper, ours=f"in half precision{paper.ours and f'; {paper.ours}'}")
        for paper in declared.papers(half)
        if paper.measured and paper.table.name in named
    ]
    return _beside_page(
        results, about.title, not about.full_size, papers, command, form
    )


def _beside_page(
    results: Results,
    title: str,
    stand_in: bool,
    tables: Sequence[Beside],
    command: str,
    form: str,
) -> str:
    """Tables of the papers with our numbers, each followed by its changes of quality.

    Args:
        results: what the numbers were looked up in.
        title: title of the experiment.
        stand_in: whether the experiment has other data than the papers.
        tables: the tables; those without a measured number are only named.
        command: the command that is running.
        form: form of the tables, see `grid`.
    """
    grids = [
        grid
        for table in tables
        if table.measured
        for grid in (table.grid(), table.changes())
        if grid
    ]
    name = results.config.name
    said = shortened(results.work)
    if stand_in:
        differs = (
            f"{name} is a stand-in: other data and smaller models than the papers'. Iterations and changes of quality "
            f"can be compared with theirs; scores and seconds cannot. {said}"
        )
    else:
        differs = (
            said
            or f"{name} has the papers' data and model sizes; the machine may differ from theirs."
        )
    lines = [f"{title}. {differs}".strip()]
    if any(
        measure is speed_up and place.over.startswith("beam")
        for place, measure in results.used
    ):
        lines[0] += (
            " Speed-ups over fairseq's search contain what this plugin's engine gains without drafts: rows by `greedy` "
            "have that part alone."
        )
    sets = [
        found
        for subset in sorted(
            {place.set for place, _ in results.used}, key=_order_of_sets
        )
        if (found := results.test_set(subset))
    ]
    if sets:
        sizes = ", ".join(f"{test}: {size} sentences" for test, size in sets)
        lines.append(
            f"Scores are of all that was decoded ({sizes}); iterations and tokens too where their counters were kept, "
            "otherwise of the sentences that were timed."
        )
    machines: dict[str, dict[str, list[str]]] = {}
    for record_name, record in _records(results).items():
        timed = machines.setdefault(describe(record.machine), {})
        timed.setdefault(f"{record.sentences} inputs", []).append(record_name)
    for machine, timed in machines.items():
        sizes = "; ".join(
            f"{size}: {', '.join(names)}" for size, names in timed.items()
        )
        lines.append(f"Times ({sizes}): {machine}.")
    if missing := [table.table.name for table in tables if not table.measured]:
        lines.append(f"Nothing has been measured yet of {', '.join(missing)}.")
    return _page(results, f"{name} beside the papers", lines, grids, command, form)


def shortened(work: Path) -> str:
    """What of an experiment was made with settings that shorten it, by the settings; empty where all is whole."""
    made: dict[str, list[str]] = {}
    for mark in sorted(work.rglob("*.shortened")):  # of scripts/stage.sh
        result = mark.with_suffix("")
        if result.exists():
            made.setdefault(mark.read_text().strip(), []).append(
                str(result.relative_to(work))
            )
    said = "; ".join(
        f"{settings} of {', '.join(results)}" for settings, results in made.items()
    )
    return (
        said
        and f"Shortened, not the papers' training or not all of their sentences: {said}."
    )


def _own_page(
    results: Results, name: str, tables: Sequence[Own], command: str, form: str
) -> str:
    """The tables that an experiment declares under one name.

    Raises:
        AggdecError: none of their numbers was measured.
    """
    grids = [grid for table in tables if (grid := table.grid())]
    if not grids:
        raise AggdecError(
            f"{name}: nothing of it has been measured yet; run its stage of {results.config.name} first"
        )
    parts = []
    scored = dict.fromkeys(
        place.set for place, measure in results.used if isinstance(measure, Score)
    )
    if counts := "/".join(
        str(test[1]) for subset in scored if (test := results.test_set(subset))
    ):
        parts.append(f"Scores of {counts} sentences")
    if runs := [run for place, _ in results.used if (run := place.run) is not None]:
        timed = "/".join(dict.fromkeys(str(run.counts.sentences) for run in runs))
        parts.append(
            f"times of the first {timed} of them"
            if counts
            else f"Times of {timed} inputs"
        )
        parts[-1] += ", batch size 1"
        names = dict.fromkeys(place.record for place, _ in results.used)
        found = (record for record in map(results.record, names) if record is not None)
        parts.append(
            " / ".join(dict.fromkeys(describe(record.machine) for record in found))
        )
    lines = [f"{'; '.join(parts)}."] if parts else []
    lines += filter(None, [shortened(results.work)])
    return _page(results, f"{results.config.name}: {name}", lines, grids, command, form)


def _write_figures(tables: Sequence[Own], files: Sequence[Path]) -> None:
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


def _draw(table: Own, path: Path) -> None:
    """Draw a table with `figure`: points of one kind for each column, one point for each row."""
    from matplotlib.figure import Figure

    from fairseq_aggdec.lab.bench.figures import save

    assert table.figure is not None
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel=table.figure[1], ylabel=table.figure[0])
    for number, (column, marker) in enumerate(
        zip(table.columns, cycle("os^D"), strict=False)
    ):
        for row, cells in table.rows.items():
            y, x = cells[column].numbers if column in cells else (None, None)
            if x is not None and y is not None:
                axes.plot([x], [y], color=f"C{number}", marker=marker, markersize=5)
                axes.annotate(
                    row,
                    (x, y),
                    textcoords="offset points",
                    xytext=(5, 3),
                    fontsize=6,
                    color=f"C{number}",
                )
        if len(table.columns) > 1:
            axes.plot(
                [],
                [],
                color=f"C{number}",
                marker=marker,
                linestyle="none",
                label=column,
            )
            axes.legend(frameon=False)
    axes.margins(0.12)  # room for the names
    save(figure, path)


def _records(results: Results) -> dict[str, Record]:
    """The records of all numbers that were found, in the order of their files."""
    found = {
        f"{name}{place.results.ending}": place.results.record(name)
        for place, _ in results.used
        for name in (place.record, place.over_record)
        if name
    }
    names = sorted(found, key=lambda name: (name.count("/"), name.split("/")))
    return {name: record for name in names if (record := found[name]) is not None}


def _order_of_sets(subset: str) -> tuple[int, str]:
    return (0 if subset == "valid" else 1, subset)


def _page(
    results: Results,
    title: str,
    lines: Sequence[str],
    grids: Sequence[Grid],
    command: str,
    form: str,
) -> str:
    """The page, with the commands that made its numbers; refuses other outputs of lossless modes."""
    runs = {
        f"{place.record}{place.results.ending}, {place.mode or place.label}": place.run
        for place, _ in results.used
    }
    refuse_differing(
        [name for name, run in runs.items() if run and run.counts.differing]
    )
    outputs = {
        (place.set, f"{place.label}{place.results.ending}"): place.decoding
        for place, _ in results.used
    }
    decodings = [
        found.command for _, found in sorted(outputs.items()) if found and found.command
    ]
    made = [
        *decodings,
        *(record.command for record in _records(results).values()),
        command,
    ]
    listed = [*dict.fromkeys(map(results.relative, made))]
    tables = [grid.text(form) for grid in grids]
    if "latex" in form:
        return (
            "\n\n".join(
                ["\n".join(f"% {line}" for line in [title, *lines, *listed]), *tables]
            )
            + "\n"
        )
    commands = "\n".join(["```", *listed, "```"])
    return (
        "\n\n".join([f"# {title}", *lines, *tables, f"## Commands\n\n{commands}"])
        + "\n"
    )
