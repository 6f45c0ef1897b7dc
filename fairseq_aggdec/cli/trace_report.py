"""`aggdec report trace`: how sentences were decoded, iteration by iteration."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.reporting.trace import wants_colour

SENTENCES = 10
"""shown without further ado"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Of `aggdec report trace`."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="STATS.jsonl",
        help="written by fairseq-generate or fairseq-interactive with --decoding-stats and --retain-iter-history",
    )
    parser.add_argument("--sentences", metavar="N,N", help=f"their numbers (default: the first {SENTENCES})")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page instead of printing")
    parser.add_argument("--title", default="Draft, verify, accept", help="of the page (default: %(default)s)")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto", help="default: %(default)s")


def print_trace(args: argparse.Namespace) -> None:
    """`aggdec report trace`.

    Raises:
        AggdecError: a file holds something else, or lacks a sentence.
    """
    from fairseq_aggdec.lab.reporting.trace_page import page
    from fairseq_aggdec.lab.reporting.trace_text import text
    from fairseq_aggdec.lab.reporting.traces import TraceFile, read_traces

    wanted = None if args.sentences is None else _numbers(args.sentences)
    limit = SENTENCES if wanted is None else None
    files = [TraceFile(path.stem, read_traces(path, wanted, limit)) for path in args.files]
    if args.html is None:
        print(text(files, wants_colour(args.colour)), end="")
        return
    with written_whole(args.html) as partial:
        partial.write_text(page(files, args.title), encoding="utf-8")
    print(args.html)


def _numbers(given: str) -> list[int]:
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise AggdecError(f"--sentences {given}: give numbers separated by commas, such as 0,3") from None
