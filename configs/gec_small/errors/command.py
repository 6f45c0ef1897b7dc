"""`aggdec corrupt`: (erroneous, clean) sentence pairs from clean English text."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from fairseq_aggdec.cli.options import NO_DEFAULT, Flag, Maybe, Verb
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.files import refuse_overwriting

from .corruption import DEFAULT_WEIGHTS
from .corruption_files import CorruptionCounts, FileCorruption, corrupt_file

_DEFAULTS = FileCorruption()


@dataclass(kw_only=True)
class Corrupt(Verb):
    """Make (erroneous, clean) pairs for training a grammatical error corrector: OUT.src holds the
    sentences of CLEAN with learner-like errors, OUT.tgt the same sentences as they were, with white
    space normalised. Empty lines are left out. The output depends on the input, the seed and the
    options only, not on the number of workers.
    """  # the options that `FileCorruption` has are named as there

    # untokenised English text in UTF-8, one sentence a line; may be gzipped (.gz)
    clean: Positional[Path]
    out: Positional[str]  # prefix of the two files written, OUT.src and OUT.tgt
    seed: int = _DEFAULTS.seed  # random seed
    workers: int = 1  # number of processes
    force: Flag = False  # overwrite OUT.src and OUT.tgt if they exist
    # mean number of errors per word; 0 changes nothing
    error_rate: float = _DEFAULTS.error_rate
    # standard deviation of the rate between sentences
    error_rate_std: float = _DEFAULTS.error_rate_std
    max_error_rate: float = _DEFAULTS.max_error_rate  # highest rate of a sentence
    keep_clean: float = _DEFAULTS.keep_clean  # share of sentences that get no error
    weights: Annotated[
        str,
        NO_DEFAULT,
        arg(
            metavar="TYPE=W,...",
            help="change the relative weight of error types, for example spelling=0.6,article=0; defaults: "
            + ", ".join(
                f"{name}={weight:g}" for name, weight in DEFAULT_WEIGHTS.items()
            ),
        ),
    ] = ""
    #: word list, one word a line, optionally followed by its count, instead of counting words in CLEAN
    vocab: Maybe[Path] = None
    # number of words, the most frequent ones; 0: only the built-in ones
    vocab_size: int = _DEFAULTS.vocab_size
    #: number of lines of CLEAN in which words are counted; 0: none, only the built-in words are known
    vocab_lines: int = _DEFAULTS.vocab_lines
    #: write both sides in Penn Treebank tokens, as published correction data are, after the errors are made
    tokens: Flag = False
    no_progress: Flag = False  # show no progress bar

    def run(self) -> None:
        source = Path(self.out + ".src")
        target = Path(self.out + ".tgt")
        _check(self, [source, target])
        given = {item.name: getattr(self, item.name) for item in fields(FileCorruption)}
        given["weights"] = parse_weights(self.weights)
        config = FileCorruption(**given)
        made = corrupt_file(
            self.clean, source, target, config, self.workers, not self.no_progress
        )
        _report([source, target], made)


def parse_weights(text: str) -> dict[str, float]:
    """The default weights, changed by ``type=weight,...``."""
    weights = dict(DEFAULT_WEIGHTS)
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise AggdecError(
                f"--weights {item!r}: expected TYPE=WEIGHT, for example spelling=0.6"
            ) from None
    return weights


def _check(args: Corrupt, outputs: Sequence[Path]) -> None:
    check_least(args, 1, "workers")
    # the files would be hidden ones in a folder
    if os.path.basename(args.out) in ("", ".", ".."):
        raise AggdecError(
            f"OUT {args.out!r}: must end in a file name, for example {os.path.join(args.out, 'train')}"
        )
    read = [path for path in (args.clean, args.vocab) if path is not None]
    for path in read:
        if not path.exists():
            raise AggdecError(f"{path}: no such file")
        if path.is_dir():
            raise AggdecError(f"{path}: is a directory, expected a text file")
    if not args.clean.is_file() and args.vocab is None:
        raise AggdecError(
            f"{args.clean}: can be read only once; give a word list with --vocab, or a regular file"
        )
    for path in outputs:
        refuse_overwriting(path, read)
        if path.exists() and not args.force:
            raise AggdecError(
                f"{path}: exists already; remove it, choose another OUT or give --force"
            )


def _report(outputs: Sequence[Path], made: CorruptionCounts) -> None:
    errors = made.edits.total()
    pairs = max(1, made.pairs)
    print(
        f"{made.pairs} pairs in {outputs[0]} and {outputs[1]}; {100 * made.unchanged / pairs:.1f} % unchanged; "
        f"{errors} errors, {errors / pairs:.2f} a sentence; {made.empty} empty lines left out"
    )
    shares = made.edits.most_common()
    print("  ".join(f"{name} {100 * count / errors:.1f}%" for name, count in shares))
