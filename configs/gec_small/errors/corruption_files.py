"""(erroneous, clean) sentence pairs made of a text file."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import open_lines, written_whole

from .corruption import CorruptionConfig, Corruptor, check_range
from .corruption_stream import CorruptionCounts, corrupt_stream, decode_line
from .lexicon import build_lexicon
from .vocabulary import count_words


@dataclass(frozen=True)
class FileCorruption(CorruptionConfig):
    """The errors that are made in a file, and the vocabulary that they come from."""

    seed: int = 1
    """the random seed"""
    tokens: bool = False
    """write both sides in Penn Treebank tokens, after the errors are made"""
    vocab: Path | None = None
    """word list, in each line a word and optionally its count; None: the words of the file are counted"""
    vocab_size: int = 30_000
    """number of words, the most frequent ones; 0: only the built-in ones"""
    vocab_lines: int = 1_000_000
    """number of lines of the file in which words are counted; 0: only the built-in words are known"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(vars(self), ["vocab_size", "vocab_lines"], 0)


def corrupt_file(
    clean: Path,
    source: Path,
    target: Path,
    config: FileCorruption,
    workers: int = 1,
    progress: bool = True,
) -> CorruptionCounts:
    """Writes a file's sentences with errors, and without; both outputs exist only when they are complete.

    The outputs depend on the file and the configuration, and not on the number of workers.

    Args:
        clean: untokenised English text in UTF-8, one sentence a line, gzipped or not; empty lines are left out.
        source: the output of sentences with errors.
        target: the output of the sentences as they were, with white space normalised.
        config: the errors and the vocabulary.
        workers: number of processes.
        progress: show progress bars.

    Raises:
        AggdecError: a file cannot be used, or a worker died; nothing is written.
    """
    corruptor = Corruptor(build_lexicon(_word_counts(clean, config, progress)), config)
    made = CorruptionCounts()
    with ExitStack() as stack:
        partial = [
            stack.enter_context(written_whole(path)) for path in (source, target)
        ]
        source_file, target_file = (
            stack.enter_context(path.open("wb")) for path in partial
        )
        lines, raw = stack.enter_context(open_lines(clean))
        size = os.path.getsize(clean) or None
        bar = stack.enter_context(
            tqdm(
                total=size,
                desc="corrupting",
                unit="B",
                unit_scale=True,
                disable=not progress,
            )
        )
        for chunk in corrupt_stream(
            corruptor, lines, config.seed, str(clean), workers, tokens=config.tokens
        ):
            source_file.write(chunk.source)
            target_file.write(chunk.target)
            made.add(chunk)
            bar.update(raw.tell() - bar.n)
            bar.set_postfix(sentences=made.pairs, refresh=False)
        # the source gets its name after the target: where both exist, they are from one run
        source.unlink(missing_ok=True)
    return made


def _word_counts(clean: Path, config: FileCorruption, progress: bool) -> dict[str, int]:
    """The frequent words: those of the given list, or counted in the first lines of the text."""
    if config.vocab is not None:
        return read_vocabulary(config.vocab, config.vocab_size)
    with open_lines(clean) as (lines, _):
        numbered = enumerate(islice(lines, min(config.vocab_lines, sys.maxsize)), 1)
        bar = tqdm(
            numbered,
            desc="counting words",
            unit=" lines",
            disable=not progress,
            leave=False,
        )
        return count_words(
            (decode_line(line, str(clean), number) for number, line in bar),
            config.vocab_size,
        )


def read_vocabulary(path: Path, size: int) -> dict[str, int]:
    """Reads a word list (`word` or `word count`, most frequent first), lower-cased, at most `size` words.

    Raises:
        AggdecError: a word is followed by something else than a count.
    """
    counts: dict[str, int] = {}
    with open_lines(path) as (lines, _):
        for number, line in enumerate(lines, 1):
            if len(counts) >= size:
                break
            fields = decode_line(line, str(path), number).split()
            if not fields:
                continue
            if len(fields) > 1 and not fields[1].isdecimal():
                raise AggdecError(
                    f"{path}, line {number}: {fields[1]!r} is not a count; expected 'word' or 'word count'"
                )
            counts.setdefault(
                fields[0].lower(), int(fields[1]) if len(fields) > 1 else 1
            )
    return counts
