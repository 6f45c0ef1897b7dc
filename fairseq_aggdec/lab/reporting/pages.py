"""Pages of tables: those of the papers, those with an experiment's numbers beside them, and an experiment's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.alarm import refuse_differences
from fairseq_aggdec.lab.grid import Grid, escape, latex, markdown
from fairseq_aggdec.lab.reporting.beside import beside_grids, commands, header, paper_grid, sources_of
from fairseq_aggdec.lab.reporting.counterparts import Counterparts, OwnTable
from fairseq_aggdec.lab.reporting.measures import run_of
from fairseq_aggdec.lab.reporting.own_tables import declared_grid, draw, grids_of_everything, measured_sources, summary
from fairseq_aggdec.lab.reporting.paper_tables import all_tables, paper_table
from fairseq_aggdec.lab.reporting.results import Results

FORMATS: dict[str, Callable[[Grid], str]] = {"markdown": markdown, "latex": latex}


def paper_page(names: Sequence[str], form: str) -> str:
    """Tables of the papers by name, such as `ge2022/5`; without names, a list of all tables.

    Raises:
        AggdecError: there is no such table.
    """
    if not names:
        return "".join(f"{table.name:<13}{table.shows}\n" for table in all_tables().values())
    return "\n\n".join(FORMATS[form](paper_grid(paper_table(name))) for name in names) + "\n"


def beside_page(results: Results, wanted: Sequence[Counterparts], form: str, own: bool) -> str:
    """Tables of the papers with an experiment's numbers beside theirs.

    Args:
        results: the experiment's results.
        wanted: the tables; if empty, the page has tables of all measurements instead.
        form: one of `FORMATS`.
        own: whether to add tables of all measurements.
    """
    grids, missing = beside_grids(results, wanted)
    used = sources_of(results, wanted)
    lines = header(results, used) if wanted else [f"{results.title}."]
    if missing:
        lines.append(f"Nothing has been measured yet of {', '.join(missing)}.")
    everything = own or not wanted
    if everything:
        grids += grids_of_everything(results)
    made = commands(results, None if everything else used)
    return _page(f"{results.experiment} beside the papers" if wanted else results.experiment, lines, grids, made, form)


def own_page(results: Results, name: str, tables: Sequence[OwnTable], form: str, figures: Sequence[Path] = ()) -> str:
    """The tables that an experiment declares under one name.

    Args:
        results: the experiment's results.
        name: their name.
        tables: the tables as declared.
        form: one of `FORMATS`.
        figures: files for drawings of the first tables that declare a figure, in their order.

    Raises:
        AggdecError: none of their numbers was measured, a lossless mode had another output than greedy decoding, or
            fewer tables declare a figure.
    """
    used = measured_sources(results, tables)
    if not used:
        raise AggdecError(f"{name}: nothing of it has been measured yet; run its stage of {results.experiment} first")
    runs = [(source, run_of(results, source)) for source in used]
    refuse_differences({f"{source.record}, {source.mode}": run.differing for source, run in runs if run is not None})
    grids = [declared_grid(results, table, f"{name}-{number}") for number, table in enumerate(tables, start=1)]
    drawn = [table for table in tables if table.figure]
    if len(figures) > len(drawn):
        many = "no figure" if not drawn else f"{len(drawn)} figures only"
        raise AggdecError(f"{figures[len(drawn)]}: table {name} of {results.experiment} declares {many}")
    for table, figure in zip(drawn, figures, strict=False):
        draw(results, table, figure)
    title, lines = f"{results.experiment}: {name}", [f"{summary(results, used)}."]
    return _page(title, lines, [grid for grid in grids if grid is not None], commands(results, used), form)


def _page(title: str, lines: Sequence[str], grids: Sequence[Grid], made: Sequence[str], form: str) -> str:
    """The page, with the commands that made its numbers."""
    tables = [FORMATS[form](grid) for grid in grids]
    if form == "latex":
        comments = ["% needs \\usepackage{booktabs}", *(f"% {command}" for command in made)]
        return "\n\n".join(["\n".join(comments), *map(escape, lines), *tables]) + "\n"
    listed = "\n".join(["```", *made, "```"])
    return "\n\n".join([f"# {title}", *lines, *tables, f"## Commands\n\n{listed}"]) + "\n"
