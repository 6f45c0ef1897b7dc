"""`aggdec drafter --verifier CKPT --data DATA-BIN --out FOLDER`: a drafter for your model, in one command."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import AggdecError, on_command_line

_MINUTES = 30.0

_EPILOG = """\
It first says how long each stage will take on this machine, how many tokens an iteration the drafter must bring to gain
anything, and what other drafters have brought; what this one will bring is not known before. After it was stopped, the
same command goes on. After it has ended, the same command with more --minutes or --updates trains on; both are totals.
FOLDER/drafter.pt is the drafter; all else in FOLDER is needed to train on."""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: a file or an option cannot be used, or a stage failed.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    args.begun = time.monotonic()
    options.check_least(parser, args, 1, "minutes", "updates", "decoder_layers", "block_size")
    if args.minutes == math.inf:
        parser.error("--minutes inf: must have an end")
    if args.minutes is None and args.updates is None:
        args.minutes = _MINUTES
    if not args.verifier.is_file():
        raise AggdecError(f"--verifier {args.verifier}: no such file; name one checkpoint, no ensemble")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the training that it runs ends with it
    options.start_distilling()
    from fairseq_aggdec.lab.bench.drafter_speed import drafter_speed
    from fairseq_aggdec.train.drafter.stages import make_drafter

    make_drafter(args, drafter_speed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec drafter",
        description="Train a block drafter for a model: distil its training set, train, average, measure beside greedy "
        "decoding, choose the block size.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--verifier", type=Path, required=True, metavar="CKPT", help="the model to draft for")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DATA-BIN", help="its data, with the splits train and valid"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder to make")
    parser.add_argument("-s", "--source-lang", help="where DATA-BIN has several pairs")
    parser.add_argument("-t", "--target-lang")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--minutes",
        type=float,
        help="time for all that the command does; it ends a little later where the machine gets slower meanwhile "
        f"(default: {_MINUTES:g})",
    )
    length.add_argument("--updates", type=int, help="distil the whole training set, and train so many updates")
    parser.add_argument(
        "--decoder-layers", type=int, default=2, help="of the drafter, at most the verifier's (default: 2)"
    )
    parser.add_argument("--block-size", type=int, default=10, help="tokens of a draft, at most (default: 10)")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    return parser
