"""`aggdec-report paper` and `aggdec-report experiment`: the papers' tables, alone and beside an experiment's own."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.grid import Grid, escape, latex, markdown
from fairseq_aggdec.reporting.paper_tables import all_tables, paper_table

if TYPE_CHECKING:
    from fairseq_aggdec.reporting.counterparts import Counterparts, OwnTable, Source, Tables
    from fairseq_aggdec.reporting.results import Results

FORMATS: dict[str, Callable[[Grid], str]] = {"markdown": markdown, "latex": latex}


def add_paper_options(parser: argparse.ArgumentParser) -> None:
    """Of `aggdec-report paper`."""
    parser.add_argument("tables", nargs="*", metavar="PAPER/TABLE", help="such as 000/5 (default: list them)")
    _add_format_options(parser)


def add_experiment_options(parser: argparse.ArgumentParser) -> None:
    """Of `aggdec-report experiment`."""
    parser.add_argument("experiment", help="a folder of configs/, or its name")
    parser.add_argument("--work", type=Path, help="its work folder (default: that name in AGGDEC_WORK, or in work)")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("AGGDEC_DATA", "../shared/data")),
        help="folder of the data sets, where M2 files are (default: AGGDEC_DATA, or %(default)s)",
    )
    parser.add_argument(
        "--paper",
        action="append",
        default=[],
        metavar="PAPER/TABLE",
        help="only this table, such as 000/5; can be repeated (default: all of which something was measured)",
    )
    parser.add_argument(
        "--table", metavar="NAME", help="instead, this table of the experiment itself: a name of `own` in tables.yaml"
    )
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUE,VALUE",
        help="of --table: other values than tables.yaml gives to this axis; can be repeated",
    )
    parser.add_argument("--figure", type=Path, metavar="FILE.png", help="of --table: draw what it declares as a figure")
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a further file of aggdec-bench --json, as if it lay in the work folder as NAME.json; can be repeated",
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="then every score and time that was measured (without a tables.yaml: these alone)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write scores, counters and times to this file")
    parser.add_argument("--results", type=Path, metavar="FILE", help="read them from a file of --json instead")
    _add_format_options(parser)


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=tuple(FORMATS), default="markdown", help="default: %(default)s")
    parser.add_argument("--output", type=Path, help="write the tables to this file, too")


def print_papers(args: argparse.Namespace) -> None:
    """`aggdec-report paper`.

    Raises:
        AggdecError: there is no such table.
    """
    from fairseq_aggdec.reporting.beside import paper_grid

    if not args.tables:
        _show("".join(f"{table.name:<8}{table.shows}\n" for table in all_tables().values()), args.output)
        return
    grids = [paper_grid(paper_table(name)) for name in args.tables]
    _show("\n\n".join(map(FORMATS[args.format], grids)) + "\n", args.output)


def print_experiment(args: argparse.Namespace, argv: Sequence[str]) -> None:
    """`aggdec-report experiment`.

    Args:
        args: its options.
        argv: the words of the command, which the results keep.

    Raises:
        AggdecError: there is no such experiment or table, or nothing has been measured.
    """
    from fairseq_aggdec.reporting.counterparts import read_tables

    config = _config(args.experiment)
    axes = {name: values.split(",") for name, values in _pairs("--axis", args.axis, "k=2,4").items()}
    tables = read_tables(config, axes)
    command = shlex.join(["aggdec-report", *argv])
    if args.table:
        _show(_own_document(args, config, tables, axes, command), args.output)
        return
    for option, given in (("--axis", args.axis), ("--figure", args.figure)):
        if given:
            raise AggdecError(f"{option}: is of --table; name one")
    for name in args.paper:
        if name not in tables.counterparts:
            raise AggdecError(
                f"--paper {name}: {config / 'tables.yaml'} has no counterparts for {paper_table(name).name}; it has "
                + ", ".join(tables.counterparts)
            )
    results = _results(args, config, tables.score, command)
    wanted = [tables.counterparts[name] for name in args.paper or tables.counterparts]
    _show(_document(results, wanted, args.format, args.own), args.output)


def _document(results: Results, wanted: list[Counterparts], form: str, own: bool) -> str:
    from fairseq_aggdec.reporting.beside import all_grids, commands, header, sources_of
    from fairseq_aggdec.reporting.own_tables import own_grids

    grids, missing = all_grids(results, wanted)
    used = sources_of(results, wanted)
    lines = header(results, used) if wanted else [f"{results.title}."]
    if missing:
        lines.append(f"Nothing has been measured yet of papers/{', papers/'.join(missing)}.")
    everything = own or not wanted
    if everything:
        grids += own_grids(results)
    made = commands(results, None if everything else used)
    return _page(f"{results.experiment} beside the papers" if wanted else results.experiment, lines, grids, made, form)


def _own_document(
    args: argparse.Namespace, config: Path, tables: Tables, axes: Mapping[str, Sequence[str]], command: str
) -> str:
    from fairseq_aggdec.reporting.beside import commands
    from fairseq_aggdec.reporting.own_tables import declared_grid, draw, head, measured_sources

    name, where = args.table, config / "tables.yaml"
    if name not in tables.own:
        raise AggdecError(f"--table {name}: no such table in {where}; it has {', '.join(tables.own) or 'none'}")
    own: list[OwnTable] = tables.own[name]
    known = dict.fromkeys(axis for table in own for axis in table.axes)
    if odd := [axis for axis in axes if axis not in known]:
        raise AggdecError(f"--axis {odd[0]}: table {name} of {where} has {', '.join(known)}")
    drawn = [table for table in own if table.figure]
    if args.figure and not drawn:
        raise AggdecError(f"--figure {args.figure}: table {name} of {where} declares no figure")
    sources = [source for table in own for cell in table.cells.values() for source in cell.sources]
    results = _results(args, config, tables.score, command, sources)
    used = measured_sources(results, own)
    if not used:
        raise AggdecError(f"--table {name}: nothing of it has been measured yet; run its stage of {config.name} first")
    found = [declared_grid(results, table, f"{name}-{number}") for number, table in enumerate(own, start=1)]
    if args.figure:
        draw(results, drawn[0], args.figure)
    grids = [grid for grid in found if grid is not None]
    return _page(f"{config.name}: {name}", [f"{head(results, used)}."], grids, commands(results, used), args.format)


def _page(title: str, lines: Sequence[str], grids: Sequence[Grid], made: Sequence[str], form: str) -> str:
    """Everything with the commands that made it."""
    tables = [FORMATS[form](grid) for grid in grids]
    if form == "latex":
        comments = ["% needs \\usepackage{booktabs}", *(f"% {command}" for command in made)]
        return "\n\n".join(["\n".join(comments), *map(escape, lines), *tables]) + "\n"
    listed = "\n".join(["```", *made, "```"])
    return "\n\n".join([f"# {title}", *lines, *tables, f"## Commands\n\n{listed}"]) + "\n"


def _show(text: str, output: Path | None) -> None:
    """Prints a text, and writes it where `--output` says."""
    print(text, end="")
    if output is not None:
        with written_whole(output) as partial:
            partial.write_text(text, encoding="utf-8")


def _results(
    args: argparse.Namespace, config: Path, metrics: Sequence[str], command: str, only: Sequence[Source] | None = None
) -> Results:
    if args.results:
        from fairseq_aggdec.reporting.results import load_results

        results = load_results(args.results)
        if results.experiment != config.name:
            raise AggdecError(f"--results {args.results}: of {results.experiment}, not of {config.name}")
        return _kept(results, args)
    from fairseq_aggdec.cli.experiments import read_experiment
    from fairseq_aggdec.reporting.gathering import gather

    work = args.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
    if not work.is_dir():
        raise AggdecError(f"--work {work}: no such folder; run the experiment's stages first")
    about = read_experiment(config)
    given = _pairs("--record", args.record, "bench/bench=out.json")
    records = {name: Path(file) for name, file in given.items()}
    found = gather(about.title, not about.full_size, config, work, args.data, command, metrics, records, only)
    return _kept(found, args)


def _kept(results: Results, args: argparse.Namespace) -> Results:
    """Written where `--json` says."""
    if args.json:
        results.save(args.json)
    return results


def _pairs(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    """What an option says by name; it can be repeated."""
    pairs = {}
    for entry in given:
        name, equals, said = entry.partition("=")
        if not equals or not name or not said:
            raise AggdecError(f"{option} {entry}: give a name and what it stands for, such as {example}")
        pairs[name] = said
    return pairs


def _config(given: str) -> Path:
    for folder in (Path(given), Path("configs") / given):
        if (folder / "about.yaml").is_file():
            return folder.resolve()
    raise AggdecError(f"{given}: no such experiment here; give its folder, or run this where configs/ is")
