"""The file of one shard's targets, to which batches are only appended.

A line is the CRC-32 of a JSON text, a space and that text; the first line holds the settings. If a killed process has
left half a line at the end, it is recognised and cut off; nothing before it is changed.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairseq_aggdec.distillation.data_bin import Tokens
from fairseq_aggdec.distillation.settings import ShardSettings
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import lock

_FORMAT = 1


@dataclass(frozen=True)
class DecodedBatch:
    """The teacher's output for one batch.

    Attributes:
        batch: the batch's number in the plan.
        sentences: the numbers of its sentences.
        targets: the target tokens of each sentence, EOS included.
    """

    batch: int
    sentences: list[int]
    targets: list[Tokens]


@dataclass(frozen=True)
class ShardName:
    """A shard by its number, and its file `SPLIT.shard-ID-of-NUMBER.jsonl` in the folder of shards."""

    folder: Path
    split: str
    shard: int
    shards: int

    @property
    def path(self) -> Path:
        """The shard's file."""
        return self.folder / f"{self.split}.shard-{self.shard}-of-{self.shards}.jsonl"

    def __str__(self) -> str:
        return f"{self.split}: shard {self.shard} of {self.shards} ({self.path})"

    def advice(self) -> str:
        """For messages: what to do about a shard that is not finished."""
        return f"run it (again) with --num-shards {self.shards} --shard-id {self.shard}; it goes on where it stopped"

    @classmethod
    def all_in(cls, folder: Path, split: str | None = None) -> list[ShardName]:
        """The shards that have a file, of one split or of all."""
        names = []
        for path in sorted(folder.glob("*.jsonl")):
            match = re.fullmatch(r"(.+)\.shard-(\d+)-of-(\d+)\.jsonl", path.name)
            if match and split in (None, match[1]):
                names.append(cls(folder, match[1], int(match[2]), int(match[3])))
        return names


class ShardWriter:
    """Appends to a shard's file; made by `open_shard`."""

    def __init__(self, file: BinaryIO, done: int, cut: int) -> None:
        self._file = file
        self.done = done
        """the number of batches that earlier runs have completed"""
        self.cut = cut
        """the number of torn or damaged bytes at the end that were cut off"""

    def write(self, batch: DecodedBatch) -> None:
        """Appends one batch; once this has returned, it is safe on the disk."""
        tokens = np.concatenate(batch.targets).tolist()
        sizes = [len(target) for target in batch.targets]
        self.append({"batch": batch.batch, "sentences": batch.sentences, "sizes": sizes, "tokens": tokens})

    def append(self, record: dict[str, Any]) -> None:
        """Appends one line, and waits until it is on the disk."""
        text = json.dumps(record, separators=(",", ":")).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_shard(name: ShardName, settings: ShardSettings, batches: Sequence[int]) -> Iterator[ShardWriter]:
    """Opens or makes the file of a shard, to append after the last complete batch.

    Args:
        name: the shard.
        settings: the settings that it is decoded with.
        batches: the numbers of its batches, in the order of decoding.

    Raises:
        AggdecError: another process is writing the file, or it was made with other settings.
    """
    name.folder.mkdir(parents=True, exist_ok=True)
    with name.path.open("a+b") as file:
        lock(file.fileno(), str(name))
        file.seek(0)
        records = _records(file)
        found, end = _header(records, name)
        if found is not None and (difference := settings.difference(found, "now", "in the file")):
            raise AggdecError(
                f"{name}: was begun with other settings ({difference}); go on with those, delete the file, or choose "
                "another folder for the output"
            )
        done = 0
        for record, position in records:
            if done >= len(batches) or record["batch"] != batches[done]:
                raise AggdecError(f"{name}: holds batch {record['batch']}, which is not the next one; delete the file")
            done, end = done + 1, position
        torn = file.seek(0, os.SEEK_END) - end
        file.truncate(end)
        writer = ShardWriter(file, done, torn)
        if found is None:
            header = {"format": _FORMAT, "shard": name.shard, "shards": name.shards, "settings": asdict(settings)}
            writer.append(header)
        yield writer


def read_shard(name: ShardName) -> tuple[ShardSettings, list[DecodedBatch]]:
    """The settings and the batches of a shard.

    Raises:
        AggdecError: there is no such file, or it is damaged; the message names it.
    """
    if not name.path.is_file():
        raise AggdecError(f"{name}: missing; {name.advice()}")
    done = []
    with name.path.open("rb") as file:
        records = _records(file)
        settings, end = _header(records, name)
        for record, position in records:
            end = position
            ends = np.cumsum(record["sizes"])
            targets = np.split(np.array(record["tokens"], dtype=np.int32), ends[:-1])
            done.append(DecodedBatch(record["batch"], record["sentences"], targets))
        size = file.seek(0, os.SEEK_END)
    if settings is None or end != size:
        raise AggdecError(f"{name}: torn or damaged after {len(done)} batches; {name.advice()}")
    return settings, done


def _records(file: BinaryIO) -> Iterator[tuple[dict[str, Any], int]]:
    """The file's lines up to the first damaged one, each with the position of its end."""
    position = 0
    for line in file:
        position += len(line)
        checksum, _, text = line[:-1].partition(b" ")
        if line[-1:] != b"\n" or checksum != b"%08x" % zlib.crc32(text):
            return
        yield json.loads(text), position


def _header(records: Iterator[tuple[dict[str, Any], int]], name: ShardName) -> tuple[ShardSettings | None, int]:
    """The settings in the first line, None if it is damaged, and the position of its end."""
    header, end = next(records, ({}, 0))
    if not end:
        return None, 0
    try:
        if (header["format"], header["shard"], header["shards"]) != (_FORMAT, name.shard, name.shards):
            raise AggdecError(f"{name}: its first line is that of another shard; was the file renamed?")
        return ShardSettings.from_dict(header["settings"]), end
    except (KeyError, TypeError) as error:
        raise AggdecError(f"{name}: made by another version of aggdec distill; delete the file") from error
