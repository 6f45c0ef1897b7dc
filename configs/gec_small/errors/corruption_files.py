"""(erroneous, clean) sentence pairs made of a text file, in constant memory."""

import os
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from experiments.processes import chunks, in_processes
from experiments.ptb import tokenise
from tqdm import tqdm

from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.files import decode_text, open_lines, written_whole

from .corruption import CorruptionConfig, Corruptor
from .lexicon import build_lexicon
from .vocabulary import count_words

_CHUNK = 1000
"""lines that a process takes at once"""


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
        check_least(self, 0, "vocab_size", "vocab_lines")


@dataclass
class CorruptionCounts:
    """Counts of what is made of lines."""

    pairs: int
    unchanged: int
    """pairs without an error"""
    empty: int
    """lines left out because they hold no text"""
    edits: Counter[str]
    """errors by type"""


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

    def corrupt_lines(
        chunk: tuple[int, list[bytes]],
    ) -> list[tuple[str, str, list[str]]]:
        """(sentence with errors, sentence, types of the errors) of each line; "" where it holds no text."""
        first, lines = chunk
        made = []
        for number, line in enumerate(lines, first):
            text = _text(line, clean, number)
            wrong, edits = corruptor.corrupt_line(text, config.seed, number)
            if config.tokens:
                wrong = tokenise(wrong)
                text = tokenise(text)
            made.append((wrong, text, edits))
        return made

    made = CorruptionCounts(0, 0, 0, Counter())
    with ExitStack() as stack:
        # the source gets its name after the target: where both exist, they are from one run
        source_file, target_file = (
            stack.enter_context(
                stack.enter_context(written_whole(path)).open("w", encoding="utf-8")
            )
            for path in (source, target)
        )
        lines, raw = stack.enter_context(open_lines(clean))
        bar = stack.enter_context(
            tqdm(
                total=os.path.getsize(clean) or None,
                desc="corrupting",
                unit="B",
                unit_scale=True,
                disable=not progress,
            )
        )
        for chunk in in_processes(corrupt_lines, chunks(lines, _CHUNK), workers):
            pairs = [pair for pair in chunk if pair[1]]
            made.pairs += len(pairs)
            made.empty += len(chunk) - len(pairs)
            for wrong, text, edits in pairs:
                source_file.write(f"{wrong}\n")
                target_file.write(f"{text}\n")
                made.unchanged += not edits
                made.edits.update(edits)
            bar.update(raw.tell() - bar.n)
            bar.set_postfix(sentences=made.pairs, refresh=False)
        source.unlink(missing_ok=True)
    return made


def _text(line: bytes, path: Path, number: int) -> str:
    """The text of one line with its spaces normalised; raises `AggdecError` where it is not UTF-8."""
    return " ".join(decode_text(line, str(path), number).split())


def _word_counts(clean: Path, config: FileCorruption, progress: bool) -> dict[str, int]:
    """The frequent words: those of the given list, or counted in the first lines of the text."""
    if config.vocab is not None:
        return read_vocabulary(config.vocab, config.vocab_size)
    with open_lines(clean) as (lines, _):
        bar = tqdm(
            islice(lines, min(config.vocab_lines, sys.maxsize)),
            desc="counting words",
            unit=" lines",
            disable=not progress,
            leave=False,
        )
        texts = (_text(line, clean, number) for number, line in enumerate(bar, 1))
        return count_words(texts, config.vocab_size)


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
            fields = _text(line, path, number).split()
            if not fields:
                continue
            word, count = [*fields, "1"][:2]
            if not count.isdecimal():
                raise AggdecError(
                    f"{path}, line {number}: {count!r} is not a count; expected 'word' or 'word count'"
                )
            counts.setdefault(word.lower(), int(count))
    return counts
