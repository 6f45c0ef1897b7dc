"""Makes errors in a stream of lines, in constant memory; the result does not depend on the number of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from experiments.processes import chunks, in_processes
from experiments.ptb import tokenise

from fairseq_aggdec.files import decode_text

from .corruption import Corruptor


@dataclass
class CorruptionCounts:
    """Counts of what is made of lines."""

    pairs: int = 0
    unchanged: int = 0
    """pairs without an error"""
    empty: int = 0
    """lines left out because they hold no text"""
    edits: Counter[str] = field(default_factory=Counter)
    """number of errors by type"""

    def add(self, other: CorruptionCounts) -> None:
        """Adds the counts of other lines."""
        self.pairs += other.pairs
        self.unchanged += other.unchanged
        self.empty += other.empty
        self.edits.update(other.edits)


@dataclass
class CorruptedChunk(CorruptionCounts):
    """The pairs of consecutive lines, as they are written, and their counts."""

    source: bytes = b""
    """the erroneous sentences, one in a line"""
    target: bytes = b""
    """the clean sentences, one in a line"""


def decode_line(line: bytes, name: str, number: int) -> str:
    """The text of one line with its spaces normalised.

    Raises:
        AggdecError: the bytes are not UTF-8; the message names file and line.
    """
    return " ".join(decode_text(line, name, number).split())


def corrupt_chunk(
    corruptor: Corruptor,
    seed: int,
    name: str,
    first: int,
    lines: list[bytes],
    tokens: bool = False,
) -> CorruptedChunk:
    """Corrupts consecutive lines, each by the seed and its line number; see `corrupt_stream`."""
    source: list[str] = []
    target: list[str] = []
    result = CorruptedChunk()
    for number, line in enumerate(lines, first):
        text = decode_line(line, name, number)
        if not text:
            result.empty += 1
            continue
        wrong, made = corruptor.corrupt_line(text, seed, number)
        source.append(tokenise(wrong) if tokens else wrong)
        target.append(tokenise(text) if tokens else text)
        result.unchanged += not made
        result.edits.update(made)
    result.pairs = len(source)
    if source:
        result.source = ("\n".join(source) + "\n").encode()
        result.target = ("\n".join(target) + "\n").encode()
    return result


def corrupt_stream(
    corruptor: Corruptor,
    lines: Iterable[bytes],
    seed: int,
    name: str = "input",
    workers: int = 1,
    chunk_size: int = 1000,
    tokens: bool = False,
) -> Iterator[CorruptedChunk]:
    """Corrupts lines in order; the result does not depend on `workers`.

    At most 4 x `workers` chunks are held at a time, whatever the length of the stream.

    Args:
        corruptor: makes the errors.
        lines: UTF-8 lines, with or without their line feed.
        seed: the random seed.
        name: the name of the input, for error messages.
        workers: number of processes; 1 works in this one.
        chunk_size: number of lines that a process takes at once.
        tokens: write both sides in Penn Treebank tokens.
    """
    return in_processes(
        lambda chunk: corrupt_chunk(corruptor, seed, name, *chunk, tokens),
        chunks(lines, chunk_size),
        workers,
    )
