"""`aggdec report trace`: shows how sentences were decoded, iteration by iteration."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_aggdec.cli.options import numbers
from fairseq_aggdec.files import check_result_file, written_whole
from fairseq_aggdec.lab.reporting.trace import wants_colour

SENTENCES = 10
"""the number of sentences shown by default"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `aggdec report trace`."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="STATS.jsonl",
        help="written by fairseq-generate or fairseq-interactive with --decoding-stats and --retain-iter-history",
    )
    parser.add_argument(
        "--sentences",
        type=numbers(int, 0),
        metavar="N,N",
        help=f"numbers of the sentences (default: the first {SENTENCES})",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write an HTML page instead of printing")
    parser.add_argument("--title", default="Draft, verify, accept", help="title of the page (default: %(default)s)")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto", help="default: %(default)s")


def print_trace(args: argparse.Namespace) -> None:
    """Prints what `aggdec report trace` asks for; raises `AggdecError` where a file does not have it."""
    from fairseq_aggdec.lab.reporting.trace_page import page
    from fairseq_aggdec.lab.reporting.trace_text import text
    from fairseq_aggdec.lab.reporting.traces import TraceFile, read_traces

    limit = SENTENCES if args.sentences is None else None
    files = [TraceFile(path.stem, read_traces(path, args.sentences, limit)) for path in args.files]
    if args.html is None:
        print(text(files, wants_colour(args.colour)), end="")
        return
    check_result_file(args.html, "<")
    with written_whole(args.html) as partial:
        partial.write_text(page(files, args.title), encoding="utf-8")
    print(args.html)
