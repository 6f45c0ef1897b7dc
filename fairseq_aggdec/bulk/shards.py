"""Text files cut into shards of so many lines; each is decoded by itself."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairseq_aggdec.errors import AggdecError

STDIN = "stdin"
"""what the standard input is called, and its outputs are"""


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a file."""

    path: str
    """the file's, absolute"""
    number: int
    """its own among those of the file, from 0"""
    first_line: int
    """counted from 1"""
    lines: int
    offset: int
    """bytes before it"""
    size: int
    """bytes"""
    checksum: int
    """CRC-32 of the bytes"""

    @property
    def name(self) -> str:
        """What its files are called: names sort as the lines do."""
        return f"{Path(self.path).name}.{self.number:06}"

    def read(self) -> list[bytes]:
        """Its lines, without line feeds.

        Raises:
            AggdecError: they are not what they were when the file was cut.
        """
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read(self.size)
        if zlib.crc32(data) != self.checksum:
            raise AggdecError(f"{self.path}: has been changed since this run began; start it again")
        lines = data.split(b"\n")
        return lines if lines[-1] else lines[:-1]


@dataclass(frozen=True)
class DecodedShard:
    """What became of a shard."""

    shard: Shard
    outputs: list[str]
    """one for each line; empty where there was nothing to decode"""
    skipped: list[tuple[int, str]]
    """lines of the file that could not be decoded (counted from 1), and why"""


def cut(path: Path, lines: int) -> Iterator[Shard]:
    """The shards of a file, at least one.

    Args:
        path: the file; line feeds alone end a line, as for fairseq.
        lines: of a shard; the last one can have fewer.

    Raises:
        AggdecError: it is gzipped, or a pipe, of which workers cannot read parts.
        OSError: it cannot be read.
    """
    if path.is_fifo():
        raise AggdecError(
            f"{path}: is a pipe; give a file, or use the standard input: ... | aggdec decode ... --input -"
        )
    number = first_line = offset = 0
    with path.open("rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            raise AggdecError(f"{path}: is gzipped; unpack it, or pipe it: zcat {path} | aggdec decode ... --input -")
        while (chunk := list(islice(file, lines))) or not number:
            data = b"".join(chunk)
            yield Shard(str(path.resolve()), number, first_line + 1, len(chunk), offset, len(data), zlib.crc32(data))
            number, first_line, offset = number + 1, first_line + len(chunk), offset + len(data)
