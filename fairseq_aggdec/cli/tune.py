"""`aggdec tune`: measures on a development set which k, β and τ GAD++ should have (Ge et al. 2022, Tables 6 and 7)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import option
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.generation.options import finite

QUALITIES = ("sacrebleu", "bleu", "compound-bleu", "rouge", "sari", "gleu", "m2", "m2-references", "exact")
"""metrics in which more is better; where one has several columns, the last counts"""


_sizes, _tolerances = options.numbers(int, 1), options.numbers(finite, 0)


@dataclass
class Options:
    """The options beside those for the model."""

    output: Path = option("JSON file of the measurements; a stopped run goes on with it")
    limit: int | None = option("only the first N sentences", None, least=1)
    block_sizes: Any = option("k (default: 10,15,20,25)", [10, 15, 20, 25], type=_sizes)
    betas: Any = option("β (default: 3,5)", [3, 5], type=_sizes)
    tolerances: Any = option("τ (default: 1,2,3,4,5)", [1.0, 2.0, 3.0, 4.0, 5.0], type=_tolerances)
    full_grid: bool = option(
        "all combinations; without it every k with the first β and τ, then every β and τ with the fastest k that loses "
        "no more than --loss",
        False,
    )
    metric: str = option("quality (default: bleu, of tokens)", "bleu", choices=QUALITIES, metavar=None)
    text_reference: Path | None = option("file with the split's targets as running text, for sacrebleu", None)
    m2: Path | None = option("M2 file of the split's gold edits, for m2", None)
    margin: float = option(
        "how far above greedy decoding the high-quality setting must be (default: 0)", 0.0, type=finite
    )
    loss: float = option("how far below greedy decoding the high-efficiency setting may be", 0.5, type=finite)
    beam: int = option("beam of the baseline", 5, least=1)
    batch_size: int = option("number of sentences in a batch", 1, least=1)
    repeats: int = option("number of rounds, whose median time counts", 3, least=1)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: files do not fit, or --output was measured under other conditions.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    options.start(args.threads, args.path, args.drafter_path)
    from fairseq_aggdec.lab.tune.tune_command import tune

    tune(args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aggdec tune", description=__doc__)
    options.add_subject_options(parser, "valid", required=True)
    options.add_fields(parser, Options)
    options.add_half_precision_options(parser)
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    options.check_least(parser, args, 1, "threads")
    if args.metric == "sacrebleu" and args.text_reference is None:
        parser.error("--metric sacrebleu: give --text-reference, the split's targets as running text")
    if args.metric == "m2" and args.m2 is None:
        parser.error("--metric m2: give the split's gold edits by --m2")


if __name__ == "__main__":
    main()
