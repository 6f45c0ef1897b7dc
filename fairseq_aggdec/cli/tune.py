"""`aggdec tune`: measures on a development set which k, β and τ GAD++ should have (Ge et al. 2022, Tables 6 and 7)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.tasks.search_options import finite

QUALITIES = ("sacrebleu", "bleu", "compound-bleu", "rouge", "sari", "gleu", "m2", "m2-references", "exact")
"""metrics in which more is better; where one has several columns, the last counts"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: files do not fit, or --output was measured under other conditions.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    options.start(args.threads)
    from fairseq_aggdec.lab.tuning.tune_command import tune

    tune(args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aggdec tune", description=__doc__)
    options.add_subject_options(parser, "valid", required=True)
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        help="JSON file of the measurements; a stopped run goes on with it",
    )
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    sizes, tolerances = options.numbers(int, 1), options.numbers(finite, 0)
    parser.add_argument("--block-sizes", type=sizes, default=[10, 15, 20, 25], help="k (default: 10,15,20,25)")
    parser.add_argument("--betas", type=sizes, default=[3, 5], help="β (default: 3,5)")
    parser.add_argument(
        "--tolerances", type=tolerances, default=[1.0, 2.0, 3.0, 4.0, 5.0], help="τ (default: 1,2,3,4,5)"
    )
    parser.add_argument(
        "--full-grid",
        action="store_true",
        help="all combinations; without it every k with the first β and τ, then every β and τ with the fastest k that "
        "loses no more than --loss",
    )
    parser.add_argument("--metric", choices=QUALITIES, default="bleu", help="quality (default: bleu, of tokens)")
    parser.add_argument(
        "--text-reference", type=Path, help="file with the split's targets as running text, for sacrebleu"
    )
    parser.add_argument("--m2", type=Path, help="M2 file of the split's gold edits, for m2")
    parser.add_argument(
        "--margin",
        type=finite,
        default=0.0,
        help="how far the high-quality setting must be above greedy decoding (default: 0)",
    )
    parser.add_argument(
        "--loss",
        type=finite,
        default=0.5,
        help="how far the high-efficiency setting may be below greedy decoding (default: 0.5)",
    )
    parser.add_argument("--beam", type=int, default=5, help="beam of the baseline (default: 5)")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument(
        "--repeats", type=int, default=3, help="number of rounds, whose median time counts (default: 3)"
    )
    options.add_half_precision_options(parser)
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    options.check_least(parser, args, 1, "limit", "beam", "batch_size", "repeats", "threads")
    if args.metric == "sacrebleu" and args.text_reference is None:
        parser.error("--metric sacrebleu: give --text-reference, the split's targets as running text")
    if args.metric == "m2" and args.m2 is None:
        parser.error("--metric m2: give the split's gold edits by --m2")


if __name__ == "__main__":
    main()
