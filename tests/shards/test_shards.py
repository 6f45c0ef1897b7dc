"""Text files cut into shards."""

import gzip
import os
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.text import cut


def test_all_lines_are_in_a_shard_and_in_order(tmp_path: Path) -> None:
    text = "".join(f"line {number}\u2028\n" for number in range(7)).encode() + b"\xff\n\nno line feed at the end"
    (tmp_path / "text").write_bytes(text)
    for size in (1, 3, 10, 11):
        shards = list(cut(tmp_path / "text", size))
        assert [line for shard in shards for line in shard.read()] == text.split(b"\n")
        assert [shard.first_line for shard in shards] == list(range(1, 11, size))
        assert [shard.name for shard in shards] == sorted(shard.name for shard in shards)
        assert sum(shard.size for shard in shards) == 10


def test_a_gzipped_file_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AggdecError, match=r"pipe: is a pipe; give a file"):
        list(cut(tmp_path / "pipe", 5))
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"one\n"))
    with pytest.raises(AggdecError, match=r"text.gz: is gzipped; unpack it, or pipe it"):
        list(cut(tmp_path / "text.gz", 5))
