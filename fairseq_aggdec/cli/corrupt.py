"""aggdec corrupt: (erroneous, clean) sentence pairs from clean English text."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from fairseq_aggdec.data.corruption import DEFAULT_WEIGHTS, CorruptionConfig, Corruptor
from fairseq_aggdec.data.corruption_stream import corrupt_stream, decode_line
from fairseq_aggdec.data.lexicon import build_lexicon
from fairseq_aggdec.data.vocabulary import count_words
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import open_lines, written_whole


def build_parser() -> argparse.ArgumentParser:
    """The command line of aggdec corrupt."""
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
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="number of processes (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.src and OUT.tgt if they exist")
    defaults = CorruptionConfig()
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
        help="share of sentences kept as they are (default: %(default)s)",
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
        "--vocab-size", type=int, default=30_000, help="number of most frequent words kept (default: %(default)s)"
    )
    parser.add_argument(
        "--vocab-lines",
        type=int,
        default=1_000_000,
        help="number of lines of CLEAN read to count words (default: %(default)s)",
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


def read_vocabulary(path: Path, size: int) -> dict[str, int]:
    """Reads a word list (``word`` or ``word count``, most frequent first), lower-cased, at most `size` words."""
    counts: dict[str, int] = {}
    with open_lines(path) as (lines, _):
        for number, line in enumerate(lines, 1):
            fields = decode_line(line, str(path), number).split()
            if not fields:
                continue
            if len(fields) > 1 and not fields[1].isdigit():
                raise AggdecError(
                    f"{path}, line {number}: {fields[1]!r} is not a count; expected 'word' or 'word count'"
                )
            counts.setdefault(fields[0].lower(), int(fields[1]) if len(fields) > 1 else 1)
            if len(counts) >= size:
                break
    return counts


def count_corpus_words(path: Path, size: int, most_lines: int, progress: bool) -> dict[str, int]:
    """Counts words in the first lines of the corpus: a bounded pass before the main one."""
    with open_lines(path) as (lines, _):
        numbered = enumerate(islice(lines, most_lines), 1)
        bar = tqdm(numbered, desc="counting words", unit=" lines", disable=not progress, leave=False)
        return count_words((decode_line(line, str(path), number) for number, line in bar), size)


def _check(args: argparse.Namespace, outputs: Sequence[Path]) -> None:
    if args.workers < 1:
        raise AggdecError(f"--workers {args.workers}: expected 1 or more")
    for name in ("vocab_size", "vocab_lines"):
        if getattr(args, name) < 0:
            raise AggdecError(f"--{name.replace('_', '-')} {getattr(args, name)}: expected 0 or more")
    for path in filter(None, (args.clean, args.vocab)):
        if not path.exists():
            raise AggdecError(f"{path}: no such file")
        if path.is_dir():
            raise AggdecError(f"{path}: is a directory, expected a text file")
    if not args.clean.is_file() and args.vocab is None:
        raise AggdecError(f"{args.clean}: can be read only once; give a word list with --vocab, or a regular file")
    for path in outputs:
        if path.exists() and not args.force:
            raise AggdecError(f"{path}: exists already; remove it, choose another OUT or give --force")


def run(args: argparse.Namespace) -> None:
    """Writes the two files, which are there only when they are complete.

    Raises:
        AggdecError: an option or a file cannot be used, or a worker died.
    """
    outputs = [Path(args.out + ".src"), Path(args.out + ".tgt")]
    _check(args, outputs)
    config = CorruptionConfig(
        args.error_rate, args.error_rate_std, args.max_error_rate, args.keep_clean, parse_weights(args.weights)
    )
    progress = not args.no_progress
    if args.vocab is not None:
        counts = read_vocabulary(args.vocab, args.vocab_size)
    else:
        counts = count_corpus_words(args.clean, args.vocab_size, args.vocab_lines, progress)
    corruptor = Corruptor(build_lexicon(counts), config)
    totals: Counter[str] = Counter()
    edits: Counter[str] = Counter()
    try:
        with ExitStack() as stack:
            partial = [stack.enter_context(written_whole(path)) for path in outputs]
            source, target = (stack.enter_context(path.open("wb")) for path in partial)
            lines, raw = stack.enter_context(open_lines(args.clean))
            size = os.path.getsize(args.clean) or None
            bar = stack.enter_context(
                tqdm(total=size, desc="corrupting", unit="B", unit_scale=True, disable=not progress)
            )
            for chunk in corrupt_stream(corruptor, lines, args.seed, str(args.clean), args.workers, tokens=args.tokens):
                source.write(chunk.source)
                target.write(chunk.target)
                totals.update(pairs=chunk.pairs, unchanged=chunk.unchanged, empty=chunk.empty)
                edits.update(chunk.edits)
                bar.update(raw.tell() - bar.n)
                bar.set_postfix(sentences=totals["pairs"], refresh=False)
            outputs[0].unlink(
                missing_ok=True
            )  # it gets its name after the other: both are of one run where it is there
    except BrokenProcessPool as error:
        raise AggdecError("a worker process died (out of memory?); nothing was written, try fewer --workers") from error
    _report(outputs, totals, edits)


def _report(outputs: Sequence[Path], totals: Counter[str], edits: Counter[str]) -> None:
    pairs, errors = totals["pairs"], sum(edits.values())
    share = 100 * totals["unchanged"] / pairs if pairs else 0.0
    print(
        f"{pairs} pairs in {outputs[0]} and {outputs[1]}; {share:.1f} % unchanged; {errors} errors, "
        f"{errors / pairs if pairs else 0:.2f} a sentence; {totals['empty']} empty lines left out"
    )
    print("  ".join(f"{name} {100 * count / errors:.1f}%" for name, count in edits.most_common()))


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help and `run`."""
    run(build_parser().parse_args(argv))


if __name__ == "__main__":
    main()
