"""`aggdec corrupt`: (erroneous, clean) sentence pairs from clean English text."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import refuse_overwriting

from .corruption import DEFAULT_WEIGHTS
from .corruption_files import FileCorruption, corrupt_file
from .corruption_stream import CorruptionCounts


def build_parser() -> argparse.ArgumentParser:
    """The options of `aggdec corrupt`."""
    defaults = FileCorruption()
    parser = argparse.ArgumentParser(
        prog="aggdec corrupt",
        description="Makes (erroneous, clean) pairs for training a grammatical error corrector: OUT.src holds the "
        "sentences of CLEAN with learner-like errors, OUT.tgt the same sentences as they were, with white space "
        "normalised. Empty lines are left out. The output "
        "depends on the input, the seed and the options only, not on the number of workers.",
    )
    parser.add_argument(
        "clean",
        metavar="CLEAN",
        type=Path,
        help="untokenised English text in UTF-8, one sentence a line; may be gzipped (.gz)",
    )
    parser.add_argument("out", metavar="OUT", help="prefix of the two files written, OUT.src and OUT.tgt")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="random seed (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="number of processes (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.src and OUT.tgt if they exist")
    parser.add_argument(
        "--error-rate",
        type=float,
        default=defaults.error_rate,
        help="mean number of errors per word; 0 changes nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--error-rate-std",
        type=float,
        default=defaults.error_rate_std,
        help="standard deviation of the rate between sentences (default: %(default)s)",
    )
    parser.add_argument(
        "--max-error-rate",
        type=float,
        default=defaults.max_error_rate,
        help="highest rate of a sentence (default: %(default)s)",
    )
    parser.add_argument(
        "--keep-clean",
        type=float,
        default=defaults.keep_clean,
        help="share of sentences that get no error (default: %(default)s)",
    )
    parser.add_argument(
        "--weights",
        metavar="TYPE=W,...",
        default="",
        help="change the relative weight of error types, for example spelling=0.6,article=0; defaults: "
        + ", ".join(f"{name}={weight:g}" for name, weight in DEFAULT_WEIGHTS.items()),
    )
    parser.add_argument(
        "--vocab",
        type=Path,
        help="word list, one word a line, optionally followed by its count, instead of counting words in CLEAN",
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=defaults.vocab_size,
        help="number of words, the most frequent ones; 0: only the built-in ones (default: %(default)s)",
    )
    parser.add_argument(
        "--vocab-lines",
        type=int,
        default=defaults.vocab_lines,
        help="number of lines of CLEAN in which words are counted; 0: none, only the built-in words are known "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        action="store_true",
        help="write both sides in Penn Treebank tokens, as published correction data are, after the errors are made",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    return parser


def parse_weights(text: str) -> dict[str, float]:
    """The default weights, changed by ``type=weight,...``."""
    weights = dict(DEFAULT_WEIGHTS)
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise AggdecError(f"--weights {item!r}: expected TYPE=WEIGHT, for example spelling=0.6") from None
    return weights


def _check(args: argparse.Namespace, outputs: Sequence[Path]) -> None:
    if args.workers < 1:
        raise AggdecError(f"--workers {args.workers}: expected 1 or more")
    if os.path.basename(args.out) in ("", ".", ".."):  # the files would be hidden ones in a folder
        raise AggdecError(f"OUT {args.out!r}: must end in a file name, for example {os.path.join(args.out, 'train')}")
    for path in filter(None, (args.clean, args.vocab)):
        if not path.exists():
            raise AggdecError(f"{path}: no such file")
        if path.is_dir():
            raise AggdecError(f"{path}: is a directory, expected a text file")
    if not args.clean.is_file() and args.vocab is None:
        raise AggdecError(f"{args.clean}: can be read only once; give a word list with --vocab, or a regular file")
    for path in outputs:
        refuse_overwriting(path, filter(None, (args.clean, args.vocab)))
        if path.exists() and not args.force:
            raise AggdecError(f"{path}: exists already; remove it, choose another OUT or give --force")


def _report(outputs: Sequence[Path], made: CorruptionCounts) -> None:
    errors = made.edits.total()
    share = 100 * made.unchanged / made.pairs if made.pairs else 0.0
    print(
        f"{made.pairs} pairs in {outputs[0]} and {outputs[1]}; {share:.1f} % unchanged; {errors} errors, "
        f"{errors / made.pairs if made.pairs else 0:.2f} a sentence; {made.empty} empty lines left out"
    )
    print("  ".join(f"{name} {100 * count / errors:.1f}%" for name, count in made.edits.most_common()))


def main(argv: Sequence[str] | None) -> None:
    """Command line; see --help and `corrupt_file`.

    Raises:
        AggdecError: an option or a file cannot be used, or a worker died.
    """
    args = build_parser().parse_args(argv)
    source, target = Path(args.out + ".src"), Path(args.out + ".tgt")
    _check(args, [source, target])
    args.weights = parse_weights(args.weights)
    try:
        config = FileCorruption(**{item.name: getattr(args, item.name) for item in fields(FileCorruption)})
    except AggdecError as error:
        name, _, rest = str(error).partition(":")
        raise AggdecError(f"{option_name(name)}:{rest}") from None
    made = corrupt_file(args.clean, source, target, config, args.workers, not args.no_progress)
    _report([source, target], made)
