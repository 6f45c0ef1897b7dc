"""What the commands that decode by several modes have in common: what is decoded, and on which machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_aggdec.models.sizes import SIZES

RANDOM_MODELS = tuple(SIZES)


def add_subject_options(parser: argparse.ArgumentParser) -> None:
    """Adds the checkpoints, the split and the device."""
    parser.add_argument("data", nargs="?", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", help="checkpoint, or several joined by ':'")
    parser.add_argument("--gen-subset", default="test", help="split to decode (default: test)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument("--drafter-path", help="the drafter's checkpoint, for nar, gad, gad++ and hybrid")
    parser.add_argument("--block-size", type=int, help="tokens a draft (default: what the drafter learned)")
    parser.add_argument("--threads", type=int, help="of PyTorch and of the peers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")


def add_random_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds those that put a random model in the place of checkpoints."""
    random = parser.add_argument_group(
        "random models", "full sizes without training; drafts are made from greedy's output, decoded beforehand"
    )
    random.add_argument("--random-model", choices=RANDOM_MODELS, help="in place of DATA and --path")
    random.add_argument("--length", type=int, default=25, help="tokens of source and output (default: 25)")
    random.add_argument(
        "--edit-ratio",
        type=float,
        default=0.1,
        help="of iad and hybrid: edits between the text that is copied from and the output, a token; iad~0.2 sets it "
        "for one mode (default: 0.1)",
    )
    random.add_argument(
        "--accepted",
        type=float,
        default=5.5,
        help="of gad and gad++: mean tokens an iteration; gad~7 sets it for one mode (default: 5.5)",
    )
    random.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the models here, for further runs")
    random.add_argument("--drafter-layers", type=int, default=2, help="of the random drafter's decoder (default: 2)")


def check_subject_options(parser: argparse.ArgumentParser, args: argparse.Namespace, *useless: str) -> None:
    """Exits where options make no sense, or make none beside a random model.

    Args:
        parser: of the command.
        args: what it has read.
        useless: options that were given and that a random model has no use for.
    """
    if not 0 <= args.edit_ratio <= 1:
        parser.error(f"--edit-ratio {args.edit_ratio}: must be from 0 to 1")
    if args.accepted < 1:
        parser.error(f"--accepted {args.accepted}: must be at least 1")
    if args.random_model:
        named = (("DATA", args.data), ("--path", args.path), ("--drafter-path", args.drafter_path))
        given = [*(name for name, value in named if value), *useless]
        if given:
            parser.error(f"--random-model makes up its own data, models and lengths: leave out {', '.join(given)}")
    elif not args.data or not args.path:
        parser.error("give DATA and --path, or --random-model")


def batch_sizes(text: str) -> list[int]:
    """The value of --batch-sizes.

    Raises:
        argparse.ArgumentTypeError: these are no different numbers of at least 1.
    """
    try:
        sizes = [int(size) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise argparse.ArgumentTypeError(f"{text}: give different numbers of at least 1, separated by commas")
    return sizes
