"""Corrupts a stream of lines in constant memory, with one process or several, with the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fairseq_aggdec.data.corruption import Corruptor
from fairseq_aggdec.data.ptb import tokenise
from fairseq_aggdec.data.workers import chunks, in_processes
from fairseq_aggdec.files import decode_text


@dataclass
class CorruptedChunk:
    """Pairs of consecutive lines, ready to be written."""

    source: bytes
    """erroneous sentences, one a line"""
    target: bytes
    """the same number of clean sentences"""
    pairs: int = 0
    """number of pairs"""
    unchanged: int = 0
    """pairs whose source equals its target"""
    empty: int = 0
    """input lines left out because they hold no text"""
    edits: Counter[str] = field(default_factory=Counter)
    """errors made, by type"""


def decode_line(line: bytes, name: str, number: int) -> str:
    """The text of one line with its spaces normalised.

    Raises:
        AggdecError: the bytes are not UTF-8; the message names file and line.
    """
    return " ".join(decode_text(line, name, number).split())


def corrupt_chunk(
    corruptor: Corruptor, seed: int, name: str, first: int, lines: list[bytes], tokens: bool = False
) -> CorruptedChunk:
    """Corrupts consecutive lines; each depends on the seed and its line number only. See `corrupt_stream`."""
    source: list[str] = []
    target: list[str] = []
    result = CorruptedChunk(b"", b"")
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
        lines: UTF-8 lines, with or without their newline.
        name: what error messages call the input.
        workers: number of processes; 1 works in this one.
        tokens: write both sides in Penn Treebank tokens.
    """

    def corrupt(chunk: tuple[int, list[bytes]]) -> CorruptedChunk:
        return corrupt_chunk(corruptor, seed, name, *chunk, tokens)

    return in_processes(lambda: corrupt, chunks(lines, chunk_size), workers)
