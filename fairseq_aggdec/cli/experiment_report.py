"""`aggdec report paper` and `aggdec report experiment`: the papers' tables, alone and beside our results."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.cli.options import add_data_sets_option
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import check_result_file, written_whole

if TYPE_CHECKING:
    from fairseq_aggdec.lab.reporting.counterparts import Source
    from fairseq_aggdec.lab.reporting.results import Results


def add_paper_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `aggdec report paper`."""
    parser.add_argument(
        "tables", nargs="*", metavar="PAPER/TABLE", help="tables to print, such as ge2022/5 (default: list all tables)"
    )
    _add_format_options(parser)


def add_experiment_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `aggdec report experiment`."""
    parser.add_argument("experiment", help="a folder of configs/, or its name")
    parser.add_argument(
        "--work", type=Path, help="its work folder (default: the folder of its name in AGGDEC_WORK, or in work)"
    )
    add_data_sets_option(parser, "folder of the data sets, where M2 files are")
    parser.add_argument(
        "--paper",
        action="append",
        default=[],
        metavar="PAPER/TABLE",
        help="only this table, such as ge2022/5; can be repeated (default: all that were measured)",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="print this table of the experiment itself instead: a name under `own` in tables.yaml",
    )
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUE,VALUE",
        help="with --table: values of this axis, instead of those in tables.yaml; can be repeated",
    )
    parser.add_argument(
        "--figure",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="with --table: draw the figure that tables.yaml declares for it into this .png or .svg; of several the "
        "second where repeated",
    )
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="another file of aggdec bench --json, read as if it were NAME.json in the work folder; can be repeated",
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="also print every score and time that was measured (without a tables.yaml: only these)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write scores, counters and times to this file")
    parser.add_argument("--results", type=Path, metavar="FILE", help="read them from a file that --json wrote")
    _add_format_options(parser)


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("markdown", "latex"), default="markdown", help="default: %(default)s")
    parser.add_argument("--output", type=Path, help="also write the tables to this file")


def print_papers(args: argparse.Namespace) -> None:
    """Prints what `aggdec report paper` asks for; raises `AggdecError` where there is no such table."""
    from fairseq_aggdec.lab.reporting.pages import paper_page

    _show(paper_page(args.tables, args.format), args.output)


def print_experiment(args: argparse.Namespace, argv: Sequence[str]) -> None:
    """Prints what `aggdec report experiment` asks for.

    Args:
        args: the options.
        argv: the words of the command, which are recorded with the results.

    Raises:
        AggdecError: there is no such experiment or table, or nothing has been measured.
    """
    from fairseq_aggdec.lab.reporting.counterparts import FILE, read_tables
    from fairseq_aggdec.lab.reporting.pages import beside_page, own_page
    from fairseq_aggdec.lab.reporting.paper_tables import paper_table

    # before the scores, which can take minutes
    for file, begins in ((args.json, "{"), (args.output, "%" if args.format == "latex" else "#")):
        if file is not None:
            check_result_file(file, begins)
    for path in args.figure:
        if path.suffix not in (".png", ".svg"):
            raise AggdecError(f"--figure {path}: must end with .png or .svg")
    config = _config(args.experiment)
    axes = {name: values.split(",") for name, values in _pairs("--axis", args.axis, "k=2,4").items()}
    tables, where = read_tables(config, axes), config / FILE
    command = shlex.join(["aggdec", "report", *argv])
    if args.table:
        if args.table not in tables.own:
            has = ", ".join(tables.own) or "none"
            raise AggdecError(f"--table {args.table}: no such table in {where}; it has {has}")
        own = tables.own[args.table]
        known = dict.fromkeys(axis for table in own for axis in table.axes)
        if odd := [axis for axis in axes if axis not in known]:
            raise AggdecError(f"--axis {odd[0]}: table {args.table} of {where} has {', '.join(known)}")
        sources = [source for table in own for cell in table.cells.values() for source in cell.sources]
        results = _results(args, config, tables.score, command, sources)
        _show(own_page(results, args.table, own, args.format, args.figure), args.output)
        return
    for option, given in (("--axis", args.axis), ("--figure", args.figure)):
        if given:
            raise AggdecError(f"{option} needs --table")
    for name in args.paper:
        if name not in tables.counterparts:
            raise AggdecError(
                f"--paper {name}: {where} has no counterparts for {paper_table(name).name}; it has "
                + ", ".join(tables.counterparts)
            )
    results = _results(args, config, tables.score, command)
    wanted = [tables.counterparts[name] for name in args.paper or tables.counterparts]
    _show(beside_page(results, wanted, args.format, args.own), args.output)


def _show(text: str, output: Path | None) -> None:
    """Prints a text, and writes it to the file of --output."""
    print(text, end="")
    if output is not None:
        check_result_file(output, text[:1])
        with written_whole(output) as partial:
            partial.write_text(text, encoding="utf-8")


def _results(
    args: argparse.Namespace, config: Path, metrics: Sequence[str], command: str, only: Sequence[Source] | None = None
) -> Results:
    from fairseq_aggdec.lab.reporting.results import load_results

    results = load_results(args.results) if args.results else _gathered(args, config, metrics, command, only)
    if results.experiment != config.name:
        raise AggdecError(f"--results {args.results}: of {results.experiment}, not of {config.name}")
    if args.json:
        results.save(args.json)
    return results


def _gathered(
    args: argparse.Namespace, config: Path, metrics: Sequence[str], command: str, only: Sequence[Source] | None
) -> Results:
    from fairseq_aggdec.cli.experiments import read_experiment
    from fairseq_aggdec.lab.reporting.gathering import gather

    work = args.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
    if not work.is_dir():
        raise AggdecError(f"--work {work}: no such folder; run the experiment's stages first")
    about = read_experiment(config)
    given = _pairs("--record", args.record, "bench/bench=out.json")
    records = {name: Path(file) for name, file in given.items()}
    return gather(about.title, not about.full_size, config, work, args.data, command, metrics, records, only)


def _pairs(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    """The values of a repeated option NAME=VALUE, by name."""
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
