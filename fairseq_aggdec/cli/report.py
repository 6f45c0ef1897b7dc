"""`aggdec report`: tables and figures of measurements, the papers' tables beside them, and traces of sentences."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.checkout import load_part
from fairseq_aggdec.cli.options import add_data_sets_option, numbers
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import check_result_file, written_whole

SENTENCES = 10
"""the number of sentences of a trace by default"""
_FORMS = {"markdown": "github", "latex": "latex_booktabs"}


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    # before fairseq is imported, which has everything logged then, matplotlib's search for fonts too
    logging.basicConfig(level=logging.WARNING)
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in _COMMANDS:
        about, add_options, run = _COMMANDS[words[0]]
        parser = argparse.ArgumentParser(prog=f"aggdec report {words[0]}", description=f"Print {about}.")
        add_options(parser)
        args = parser.parse_args(words[1:])
        args.command = shlex.join(["aggdec", "report", *words])
        run(args)
    else:
        _print_records(words)


def _add_experiment_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("experiment", help="a folder of configs/, or its name")
    add("--work", type=Path, help="its work folder (default: the folder of its name in AGGDEC_WORK, or in work)")
    add_data_sets_option(parser, "folder of the data sets, where M2 files are")
    name = (
        "only this table: a paper's, such as ge2022/5, or a name in the OWN of tables.py (default: all of the papers)"
    )
    add("--table", metavar="NAME", help=name)
    figure = "draw the figure of this table of OWN into this .png or .svg; of several figures the second where repeated"
    add("--figure", type=Path, action="append", default=[], metavar="FILE", help=figure)
    _add_output_options(parser)


def _add_paper_options(parser: argparse.ArgumentParser) -> None:
    tables = "tables to print, such as ge2022/5 (default: list all tables)"
    parser.add_argument("tables", nargs="*", metavar="PAPER/TABLE", help=tables)
    _add_output_options(parser)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=_FORMS, default="markdown", help="default: %(default)s")
    parser.add_argument("--output", type=Path, help="also write the tables to this file")


def _add_trace_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    files = "written by fairseq-generate or fairseq-interactive with --decoding-stats and --retain-iter-history"
    add("files", nargs="+", type=Path, metavar="STATS.jsonl", help=files)
    sentences = f"numbers of the sentences (default: the first {SENTENCES})"
    add("--sentences", type=numbers(int, 0), metavar="N,N", help=sentences)
    add("--colour", choices=("auto", "always", "never"), default="auto", help="default: %(default)s")


def _print_papers(args: argparse.Namespace) -> None:
    _show(load_part("experiments.pages").papers_text(args.tables, _FORMS[args.format]), args.output)


def _print_experiment(args: argparse.Namespace) -> None:
    form, figures = _FORMS[args.format], args.figure
    if args.output is not None:  # before the scores, which can take minutes
        check_result_file(args.output, "%" if args.format == "latex" else "#")
    for path in figures:
        if path.suffix not in (".png", ".svg"):
            raise AggdecError(f"--figure {path}: must end with .png or .svg")
    config = _config(args.experiment)
    work = args.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
    pages = load_part("experiments.pages")
    _show(pages.experiment_text(config, work, args.data, args.table, figures, args.command, form), args.output)


def _show(text: str, output: Path | None) -> None:
    """Print a text, and write it to the file of --output."""
    print(text, end="")
    if output is not None:
        check_result_file(output, text[:1])
        with written_whole(output) as partial:
            partial.write_text(text, encoding="utf-8")


def _config(given: str) -> Path:
    for folder in (Path(given), Path("configs") / given):
        if (folder / "about.yaml").is_file():
            return folder.resolve()
    raise AggdecError(f"{given}: no such experiment here; give its folder, or run this where configs/ is")


def _print_trace(args: argparse.Namespace) -> None:
    from fairseq_aggdec.lab.trace import read_traces, text, wants_colour

    limit = SENTENCES if args.sentences is None else None
    files = {path.stem: read_traces(path, args.sentences, limit) for path in args.files}
    print(text(files, wants_colour(args.colour)), end="")


def _print_records(words: list[str]) -> None:
    others = "\n".join(f"  aggdec report {name} --help\n      {text}" for name, (text, *_) in _COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="aggdec report",
        description="Print the tables of one or more measurements (Markdown), and draw their figures: speed-up "
        "against edit ratio and against batch size.",
        epilog=f"further commands:\n{others}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="OUT.json", help="written by aggdec bench --json")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw, as PNG and SVG, into this folder")
    args = parser.parse_args(words)

    from fairseq_aggdec.lab.bench.record import load_record
    from fairseq_aggdec.lab.bench.tables import markdown

    stems = [path.stem for path in args.records]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if args.figures and twice:
        raise AggdecError(f"--figures: two records are called {twice}, which their figures are named by: rename one")
    records = [load_record(path) for path in args.records]
    print("\n\n".join(f"## {stem}\n\n{markdown(record)}" for stem, record in zip(stems, records, strict=True)))
    if args.figures:
        from fairseq_aggdec.lab.bench.figures import draw

        for stem, record in zip(stems, records, strict=True):
            for path in draw(record, args.figures, stem):
                print(f"\n{path}" if path.suffix == ".png" else path)


_COMMANDS = {
    "experiment": (
        "an experiment's results beside the papers' tables, or tables of its own",
        _add_experiment_options,
        _print_experiment,
    ),
    "paper": ("tables of the papers alone, or their list", _add_paper_options, _print_papers),
    "trace": (
        "how sentences were decoded, iteration by iteration, on a terminal in colour",
        _add_trace_options,
        _print_trace,
    ),
}

if __name__ == "__main__":
    main()
