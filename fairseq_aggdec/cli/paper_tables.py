"""`aggdec-report paper` and `aggdec-report experiment`: the papers' tables, alone and with an experiment's numbers."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.cli.markdown_output import show
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.grid import Grid, escape, latex, markdown
from fairseq_aggdec.reporting.paper_tables import all_tables, paper_table

if TYPE_CHECKING:
    from fairseq_aggdec.reporting.counterparts import Counterparts
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
        show("".join(f"{table.name:<8}{table.shows}\n" for table in all_tables().values()), args.output)
        return
    grids = [paper_grid(paper_table(name)) for name in args.tables]
    show("\n\n".join(map(FORMATS[args.format], grids)) + "\n", args.output)


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
    tables = read_tables(config)
    for name in args.paper:
        if name not in tables.counterparts:
            raise AggdecError(
                f"--paper {name}: {config / 'tables.yaml'} has no counterparts for {paper_table(name).name}; it has "
                + ", ".join(tables.counterparts)
            )
    results = _results(args, config, tables.score, shlex.join(["aggdec-report", *argv]))
    if args.json:
        results.save(args.json)
    wanted = [tables.counterparts[name] for name in args.paper or tables.counterparts]
    show(_document(results, wanted, args.format, args.own), args.output)


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
    tables = [FORMATS[form](grid) for grid in grids]
    if form == "latex":
        comments = ["% needs \\usepackage{booktabs}", *(f"% {command}" for command in made)]
        return "\n\n".join(["\n".join(comments), *map(escape, lines), *tables]) + "\n"
    listed = "\n".join(["```", *made, "```"])
    title = f"# {results.experiment} beside the papers" if wanted else f"# {results.experiment}"
    return "\n\n".join([title, *lines, *tables, f"## Commands\n\n{listed}"]) + "\n"


def _results(args: argparse.Namespace, config: Path, metrics: Sequence[str], command: str) -> Results:
    if args.results:
        from fairseq_aggdec.reporting.results import load_results

        results = load_results(args.results)
        if results.experiment != config.name:
            raise AggdecError(f"--results {args.results}: of {results.experiment}, not of {config.name}")
        return results
    from fairseq_aggdec.cli.experiments import read_experiment
    from fairseq_aggdec.reporting.gathering import gather

    work = args.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
    if not work.is_dir():
        raise AggdecError(f"--work {work}: no such folder; run the experiment's stages first")
    about = read_experiment(config)
    records = _records(args.record)
    return gather(about.title, not about.full_size, config, work, args.data, command, metrics, records)


def _records(given: Sequence[str]) -> dict[str, Path]:
    records = {}
    for entry in given:
        name, equals, file = entry.partition("=")
        if not equals or not name or not file:
            raise AggdecError(f"--record {entry}: give a name and a file, such as bench/bench=out.json")
        records[name] = Path(file)
    return records


def _config(given: str) -> Path:
    for folder in (Path(given), Path("configs") / given):
        if (folder / "about.yaml").is_file():
            return folder.resolve()
    raise AggdecError(f"{given}: no such experiment here; give its folder, or run this where configs/ is")
