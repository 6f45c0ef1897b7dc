"""`aggdec corrupt`: (erroneous, clean) sentence pairs from clean English text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import refuse_overwriting

from .corruption import DEFAULT_WEIGHTS
from .corruption_files import FileCorruption, corrupt_file
from .corruption_stream import CorruptionCounts

_DEFAULTS = FileCorruption()
_DESCRIPTION = (
    "Makes (erroneous, clean) pairs for training a grammatical error corrector: OUT.src holds the sentences of CLEAN "
    "with learner-like errors, OUT.tgt the same sentences as they were, with white space normalised. Empty lines are "
    "left out. The output depends on the input, the seed and the options only, not on the number of workers."
)


@dataclass(kw_only=True)
class Options:
    """The options of `aggdec corrupt`; those that `FileCorruption` has are named as there."""

    clean: Path = argument("untokenised English text in UTF-8, one sentence a line; may be gzipped (.gz)")
    out: str = argument("prefix of the two files written, OUT.src and OUT.tgt")
    seed: int = option("random seed", _DEFAULTS.seed)
    workers: int = option("number of processes", 1)
    force: bool = option("overwrite OUT.src and OUT.tgt if they exist", False)
    error_rate: float = option("mean number of errors per word; 0 changes nothing", _DEFAULTS.error_rate)
    error_rate_std: float = option("standard deviation of the rate between sentences", _DEFAULTS.error_rate_std)
    max_error_rate: float = option("highest rate of a sentence", _DEFAULTS.max_error_rate)
    keep_clean: float = option("share of sentences that get no error", _DEFAULTS.keep_clean, metavar="SHARE")
    weights: str = option(
        "change the relative weight of error types, for example spelling=0.6,article=0; defaults: "
        + ", ".join(f"{name}={weight:g}" for name, weight in DEFAULT_WEIGHTS.items()),
        "",
        metavar="TYPE=W,...",
    )
    vocab: Path | None = option(
        "word list, one word a line, optionally followed by its count, instead of counting words in CLEAN", None
    )
    vocab_size: int = option("number of words, the most frequent ones; 0: only the built-in ones", _DEFAULTS.vocab_size)
    vocab_lines: int = option(
        "number of lines of CLEAN in which words are counted; 0: none, only the built-in words are known",
        _DEFAULTS.vocab_lines,
    )
    tokens: bool = option(
        "write both sides in Penn Treebank tokens, as published correction data are, after the errors are made", False
    )
    no_progress: bool = option("show no progress bar", False)


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


def _check(args: Options, outputs: Sequence[Path]) -> None:
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
    args = read(Options, "corrupt", argv, _DESCRIPTION)
    source, target = Path(args.out + ".src"), Path(args.out + ".tgt")
    _check(args, [source, target])
    given = {item.name: getattr(args, item.name) for item in fields(FileCorruption)}
    given["weights"] = parse_weights(args.weights)
    try:
        config = FileCorruption(**given)
    except AggdecError as error:
        name, _, rest = str(error).partition(":")
        raise AggdecError(f"{option_name(name)}:{rest}") from None
    made = corrupt_file(args.clean, source, target, config, args.workers, not args.no_progress)
    _report([source, target], made)
