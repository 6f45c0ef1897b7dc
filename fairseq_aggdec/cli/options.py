"""What the verbs' command lines have in common: options, checks of their values, and the start of the work."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fairseq_aggdec.distillation.settings import MAX_TOKENS
from fairseq_aggdec.errors import option_name
from fairseq_aggdec.models.sizes import SIZES


def add_subject_options(parser: argparse.ArgumentParser, split: str = "test", required: bool = False) -> None:
    """Adds the checkpoints, the split and the device; `required`: whether data, model and drafter must be named."""
    parser.add_argument("data", nargs=None if required else "?", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", required=required, help="checkpoint, or several joined by ':'")
    parser.add_argument("--gen-subset", default=split, help="split to decode (default: %(default)s)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument(
        "--drafter-path", required=required, help="the drafter's checkpoint, for nar, gad, gad++ and hybrid"
    )
    parser.add_argument("--threads", type=int, help="of PyTorch and of the peers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")


def add_random_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the block size and the options that put a random model in the place of checkpoints."""
    parser.add_argument("--block-size", type=int, help="tokens a draft (default: what the drafter learned)")
    random = parser.add_argument_group(
        "random models", "full sizes without training; drafts are made from greedy's output, decoded beforehand"
    )
    random.add_argument("--random-model", choices=tuple(SIZES), help="in place of DATA and --path")
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


def check_random_model_options(parser: argparse.ArgumentParser, args: argparse.Namespace, *useless: str) -> None:
    """Exits where options make no sense, or make none beside a random model, as the given ones in `useless`."""
    check_least(parser, args, 1, "limit", "threads", "length", "block_size", "drafter_layers", "max_len_b", "accepted")
    if not 0 <= args.edit_ratio <= 1:
        parser.error(f"--edit-ratio {args.edit_ratio}: must be from 0 to 1")
    if args.random_model:
        named = (("DATA", args.data), ("--path", args.path), ("--drafter-path", args.drafter_path))
        given = [*(name for name, value in named if value), *useless]
        if given:
            parser.error(f"--random-model makes up its own data, models and lengths: leave out {', '.join(given)}")
    elif not args.data or not args.path:
        parser.error("give DATA and --path, or --random-model")


def add_half_precision_options(group: argparse._ActionsContainer) -> None:
    """Adds --fp16 and --bf16, of which `precision` holds the one that is given, else None."""
    precision = group.add_mutually_exclusive_group()
    for name, text in (("fp16", "half precision"), ("bf16", "bfloat16")):
        precision.add_argument(f"--{name}", action="store_const", const=name, dest="precision", help=text)


def add_batch_options(group: argparse._ActionsContainer, default: int | None) -> None:
    """Adds the limits of a batch, the device and the precision; `default`: of --max-tokens, None to tell that it is not
    given."""
    group.add_argument(
        "--max-tokens", type=int, default=default, help=f"source tokens a batch, with padding (default: {MAX_TOKENS})"
    )
    group.add_argument("--batch-size", type=int, help="at most so many sentences a batch (default: no limit)")
    group.add_argument("--cpu", action="store_true", help="use no GPU")
    add_half_precision_options(group)


def add_data_sets_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds --data, the folder of the data sets; `what` is its help."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("AGGDEC_DATA") or "../shared/data"),
        help=f"{what} (default: AGGDEC_DATA, or ../shared/data)",
    )


def numbers(kind: type[int] | type[float], least: float) -> Callable[[str], list]:
    """The type of an option that takes several different numbers of at least `least`, separated by commas."""

    def read(text: str) -> list:
        try:
            found = [kind(part) for part in text.split(",")]
        except ValueError:
            found = []
        if not found or min(found) < least or len(set(found)) < len(found):
            raise argparse.ArgumentTypeError(
                f"{text}: give different numbers of at least {least:g}, separated by commas"
            )
        return found

    return read


def check_least(parser: argparse.ArgumentParser, args: argparse.Namespace, least: int, *names: str) -> None:
    """Exits where an option that has a value is below `least`; `names` are those of the fields."""
    for name in names:
        value = getattr(args, name)
        if value is not None and not value >= least:
            parser.error(f"{option_name(name)} {value}: must be at least {least}")


def start(threads: int | None = None) -> None:
    """Makes the plugin known to fairseq, in so many threads of PyTorch (None: as many as it takes by itself), and lets
    warnings alone be logged."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    for logger in (None, "fairseq", "fairseq_aggdec"):  # fairseq may have set them as it was imported
        logging.getLogger(logger).setLevel(logging.WARNING)
    import torch

    import fairseq_aggdec

    if threads:
        torch.set_num_threads(threads)
    fairseq_aggdec.register()


def command(verb: str, argv: Sequence[str] | None) -> str:
    """The call of a verb, as one writes it in a shell; `argv` is what its `main` was given."""
    return shlex.join(["aggdec", verb, *(sys.argv[1:] if argv is None else argv)])
