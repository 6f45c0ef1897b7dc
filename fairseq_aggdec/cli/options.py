"""What the command lines of the verbs have in common: options, checks of their values, and the start of the work.

A verb declares its options as the fields of a dataclass, made by `argument` and `option`; `read` parses a command line
into one. Nothing here imports torch or fairseq, as `--help` must be fast.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fairseq_aggdec import errors
from fairseq_aggdec.bulk.settings import MAX_TOKENS
from fairseq_aggdec.files import check_checkpoints
from fairseq_aggdec.models.sizes import SIZES

Options = TypeVar("Options")


def argument(help: str, default: Any = dataclasses.MISSING, **settings: Any) -> Any:
    """A field of an options dataclass that is given by its place; see `option`."""
    return option(help, default, positional=True, **settings)


def option(
    help: str,
    default: Any = dataclasses.MISSING,
    *,
    least: float | None = None,
    short: str | None = None,
    positional: bool = False,
    **settings: Any,
) -> Any:
    """A field of an options dataclass: `last: int = option("number of checkpoints", 5, least=1)` is `--last`.

    The field's type says how the option is read: `bool` is a switch, `list[X]` takes several words, `Literal` lists the
    choices, `X | None` may be left out, and any other type is called with the word.

    Args:
        help: the help text; the default is added to it unless the text names one.
        default: the value where the option is not given; without one the option is required.
        least: the smallest number that is accepted.
        short: a short form, such as `-s`.
        positional: whether the value is given by its place.
        settings: further arguments of `ArgumentParser.add_argument`.
    """
    metadata = {"help": help, "least": least, "short": short, "positional": positional, "settings": settings}
    if isinstance(default, list):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def read(options: type[Options], verb: str, argv: Sequence[str] | None, description: str, **settings: Any) -> Options:
    """Parse the words behind a verb into its options dataclass.

    Args:
        options: the dataclass.
        verb: its name on the command line.
        argv: the words; None: those of this process.
        description: what the verb does, for `--help`.
        settings: further arguments of `ArgumentParser`.
    """
    parser = argparse.ArgumentParser(prog=f"aggdec {verb}", description=description, **settings)
    add_fields(parser, options)
    return options(**vars(parser.parse_args(argv)))


def add_fields(group: argparse._ActionsContainer, options: type) -> None:
    """Add an option for each field of an options dataclass."""
    types = get_type_hints(options)
    for field in dataclasses.fields(options):
        _add(group, field, types[field.name])


def _add(group: argparse._ActionsContainer, field: dataclasses.Field[Any], kind: Any) -> None:
    given = field.metadata
    if get_origin(kind) in (Union, UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    settings: dict[str, Any] = {"help": given["help"], **given["settings"]}
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    required = default is dataclasses.MISSING
    if not required:
        settings["default"] = default
        if default not in (None, False, []) and "default" not in given["help"]:
            settings["help"] += " (default: %(default)s)"
    if get_origin(kind) is list:
        settings.setdefault("nargs", "*" if given["positional"] else "+")
        (kind,) = get_args(kind)
    elif given["positional"] and not required:
        settings.setdefault("nargs", "?")
    if kind is bool:
        settings["action"] = "store_true"
    elif get_origin(kind) is Literal:
        settings["choices"] = get_args(kind)
    else:
        settings.setdefault("type", kind if given["least"] is None else at_least(kind, given["least"]))
        settings.setdefault("metavar", field.name.split("_")[-1].upper())
    if given["positional"]:
        group.add_argument(field.name, **settings)
    else:
        flags = [errors.option_name(field.name), *filter(None, [given["short"]])]
        group.add_argument(*flags, dest=field.name, required=required, **settings)


def at_least(kind: Callable[[str], Any], least: float) -> Callable[[str], Any]:
    """The `type` of an argparse option that takes a number of at least `least`; `kind` is int or float."""

    def number(word: str) -> Any:
        value = kind(word)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"{word}: must be at least {least:g}")
        return value

    number.__name__ = kind.__name__  # argparse names it where the word is no number
    return number


def add_subject_options(parser: argparse.ArgumentParser, split: str = "test", required: bool = False) -> None:
    """Add the options for checkpoints, split and device.

    Args:
        parser: the verb's parser.
        split: the default split.
        required: whether data, model and drafter must be given.
    """
    parser.add_argument("data", nargs=None if required else "?", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", required=required, help="checkpoint, or several joined by ':'")
    parser.add_argument("--gen-subset", default=split, help="split to decode (default: %(default)s)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument(
        "--drafter-path",
        required=required,
        help="checkpoint of the drafter, for nar, gad, gad++, speculative and aggressive-beam",
    )
    parser.add_argument("--threads", type=int, help="number of threads of PyTorch and of the peers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")


def add_task_option(parser: argparse.ArgumentParser) -> None:
    """Add --task."""
    text = "fairseq's name of the model's task, such as translation_multi_simple_epoch (default: %(default)s)"
    parser.add_argument("--task", default="translation", help=text)


@dataclasses.dataclass
class _RandomModel:
    random_model: str | None = option("use this instead of DATA and --path", None, choices=tuple(SIZES), metavar=None)
    length: int = option("number of tokens of source and output", 25)
    edit_ratio: float = option(
        "for iad and iad++: edit ratio between the text that is copied and the output",
        0.1,
    )
    accepted: float = option("for gad, gad++ and speculative: mean accepted tokens of whole drafts", 5.5)
    trained_in: Literal["fp16", "fp32"] = option(
        "the precision whose numbers the weights are: a large model is mostly trained with --fp16", "fp16"
    )
    keep: Path | None = option("keep the models in this folder, for further runs", None, metavar="FOLDER")
    drafter_layers: int = option("number of layers of the random drafters' decoders", 2)


def add_random_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the block size, and the options by which a random model replaces checkpoints."""
    parser.add_argument(
        "--block-size", type=int, help="number of tokens in a draft (default: what the drafter's checkpoint says)"
    )
    random = parser.add_argument_group(
        "random models", "full sizes, not trained; drafts are made out of the output of greedy decoding"
    )
    add_fields(random, _RandomModel)


def check_random_model_options(parser: argparse.ArgumentParser, args: argparse.Namespace, *useless: str) -> None:
    """Exit where an option makes no sense; `useless` are given options that make none with a random model."""
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
    """Add --fp16 and --bf16; the field `precision` is the given one's name, else None."""
    precision = group.add_mutually_exclusive_group()
    for name, text in (("fp16", "half precision"), ("bf16", "bfloat16, on a GPU")):
        precision.add_argument(f"--{name}", action="store_const", const=name, dest="precision", help=text)


@dataclasses.dataclass
class _Batches:
    max_tokens: int = option("most source tokens of a batch, padding included", MAX_TOKENS)
    batch_size: int | None = option("most sentences of a batch (default: no limit)", None)
    cpu: bool = option("use no GPU", False)


def add_batch_options(group: argparse._ActionsContainer) -> None:
    """Add the limits of a batch, the device and the precision."""
    add_fields(group, _Batches)
    add_half_precision_options(group)


@dataclasses.dataclass
class _Work:
    engine: Literal["local", "ray"] = option("local: processes of this machine; ray: a Ray cluster", "local")
    workers: int = option("number of processes, or of Ray's actors, each of which loads the models", 1)


def add_work_options(group: argparse._ActionsContainer, threads: int | None, note: str) -> None:
    """Add the options for who decodes; `threads` is the default of --threads, and `note` stands in its help text."""
    add_fields(group, _Work)
    group.add_argument("--threads", type=int, default=threads, help=f"number of threads of a worker, {note}")


def add_data_sets_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --data, the folder of the data sets, with the help text `what`."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("AGGDEC_DATA") or "../shared/data"),
        help=f"{what} (default: AGGDEC_DATA, or ../shared/data)",
    )


def numbers(kind: Callable[[str], Any], least: float) -> Callable[[str], list]:
    """The `type` of an argparse option that takes different numbers of at least `least`, separated by commas."""

    def read(text: str) -> list:
        try:
            found = [kind(part) for part in text.split(",")]
        except (ValueError, argparse.ArgumentTypeError):
            found = []
        if not found or min(found) < least or len(set(found)) < len(found):
            raise argparse.ArgumentTypeError(
                f"{text}: give different numbers of at least {least:g}, separated by commas"
            )
        return found

    return read


def check_least(parser: argparse.ArgumentParser, args: argparse.Namespace, least: int, *names: str) -> None:
    """`errors.check_least` for a command: exits with the parser's usage."""
    try:
        errors.check_least(args, least, *names)
    except errors.AggdecError as error:
        parser.error(str(error))


def start(threads: int | None = None, *checkpoints: str | None) -> None:
    """Make the plugin known to fairseq, set PyTorch's threads (None: its default), and log warnings only.

    Raises:
        AggdecError: before all that, which takes seconds: one of the checkpoints does not exist.
    """
    check_checkpoints(*checkpoints)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    for logger in (None, "fairseq", "fairseq_aggdec"):  # fairseq may have set them when it was imported
        logging.getLogger(logger).setLevel(logging.WARNING)
    import torch

    import fairseq_aggdec

    if threads:
        torch.set_num_threads(threads)
    fairseq_aggdec.register()


def start_distilling() -> None:
    """Make the plugin known to fairseq, and log to stderr how far the work is."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    import fairseq_aggdec

    fairseq_aggdec.register()


def command(verb: str, argv: Sequence[str] | None) -> str:
    """The call of a verb as written in a shell; `argv` is the argument of the verb's `main`."""
    return shlex.join(["aggdec", verb, *(sys.argv[1:] if argv is None else argv)])
