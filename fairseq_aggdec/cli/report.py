"""`aggdec report`: tables and figures of measurements, the papers' tables beside them, and traces of sentences."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import experiment_report, trace_report
from fairseq_aggdec.errors import AggdecError, on_command_line

_COMMANDS = {
    "experiment": "an experiment's results as JSON and beside the papers' tables, or tables of its own",
    "paper": "tables of the papers alone, or their list",
    "trace": "how sentences were decoded, iteration by iteration, in colour on the terminal or as an HTML page",
}


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    # before fairseq is imported, which has everything logged then, matplotlib's search for fonts too
    logging.basicConfig(level=logging.WARNING)
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in _COMMANDS:
        _run(words)
    else:
        _print_records(words)


def _run(words: list[str]) -> None:
    name = words[0]
    parser = argparse.ArgumentParser(prog=f"aggdec report {name}", description=f"Print {_COMMANDS[name]}.")
    if name == "experiment":
        experiment_report.add_experiment_options(parser)
        experiment_report.print_experiment(parser.parse_args(words[1:]), words)
    elif name == "paper":
        experiment_report.add_paper_options(parser)
        experiment_report.print_papers(parser.parse_args(words[1:]))
    else:
        trace_report.add_options(parser)
        trace_report.print_trace(parser.parse_args(words[1:]))


def _print_records(words: list[str]) -> None:
    others = "\n".join(f"  aggdec report {name} --help\n      {text}" for name, text in _COMMANDS.items())
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

    from fairseq_aggdec.lab.benchmarking.record import load_record
    from fairseq_aggdec.lab.benchmarking.report import markdown

    stems = [path.stem for path in args.records]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if args.figures and twice:
        raise AggdecError(f"--figures: two records are called {twice}, which their figures are named by: rename one")
    records = [load_record(path) for path in args.records]
    print("\n\n".join(f"## {stem}\n\n{markdown(record)}" for stem, record in zip(stems, records, strict=True)))
    if args.figures:
        from fairseq_aggdec.lab.benchmarking.figures import draw

        for stem, record in zip(stems, records, strict=True):
            for path in draw(record, args.figures, stem):
                print(f"\n{path}" if path.suffix == ".png" else path)


if __name__ == "__main__":
    main()
