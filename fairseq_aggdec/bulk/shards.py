"""Shards: consecutive lines of a text file that are decoded together."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairseq_aggdec.errors import AggdecError

STDIN = "stdin"
"""the file name of the saved standard input, and the first part of its outputs' names"""


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a file."""

    path: str
    """the file's absolute path"""
    number: int
    """the shard's number within the file, from 0"""
    first_line: int
    """the number of its first line, counted from 1"""
    lines: int
    """the number of its lines"""
    offset: int
    """the number of bytes before it"""
    size: int
    """the number of its bytes"""
    checksum: int
    """the CRC-32 of its bytes"""

    @property
    def name(self) -> str:
        """The beginning of its files' names, which sort in the order of the lines."""
        return f"{Path(self.path).name}.{self.number:06}"

    def read(self) -> list[bytes]:
        """Its lines, without line feeds.

        Raises:
            AggdecError: the file has changed since it was cut into shards.
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
    """A shard's outputs."""

    shard: Shard
    outputs: list[str]
    """one for each line; empty where nothing was decoded"""
    skipped: list[tuple[int, str]]
    """the numbers (from 1) of the file's lines that could not be decoded, and why"""


def cut(path: Path, lines: int) -> Iterator[Shard]:
    """The shards of a file, at least one.

    Args:
        path: the file; only a line feed ends a line.
        lines: the number of lines in a shard; the last shard can have fewer.

    Raises:
        AggdecError: the file is gzipped, or a pipe, of which workers cannot read parts.
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
        while (chunk := list(islice(file, min(lines, sys.maxsize)))) or not number:
            data = b"".join(chunk)
            yield Shard(str(path.resolve()), number, first_line + 1, len(chunk), offset, len(data), zlib.crc32(data))
            number, first_line, offset = number + 1, first_line + len(chunk), offset + len(data)
