"""Shards: batches of binarised sentences, and lines of text files."""

import gzip
import os
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.bulk.batches import plan_batches
from fairseq_aggdec.bulk.text import cut
from tests.support.helpers import refused_with

SENTENCES = st.lists(
    st.lists(st.integers(4, 6), max_size=6).map(lambda words: np.array([*words, 2])),
    max_size=30,
)


@given(SENTENCES, st.integers(1, 8), st.integers(1, 30), st.none() | st.integers(1, 5))
def test_every_source_is_decoded_once_or_skipped(
    sources: list[np.ndarray], longest: int, max_tokens: int, batch_size: int | None
) -> None:
    plan = plan_batches(sources, longest, max_tokens, batch_size)
    texts = [source.tobytes() for source in sources]
    too_long = [len(source) > longest for source in sources]
    assert plan.skipped == [index for index, skips in enumerate(too_long) if skips]
    # each different source once
    batched = [index for batch in plan.batches for index in batch]
    decoded = [texts[index] for index in batched]
    wanted = set(texts) - {texts[index] for index in plan.skipped}
    assert sorted(decoded) == sorted(wanted)
    for text, representative in zip(texts, plan.representative, strict=True):
        if representative >= 0:
            assert representative in batched
            assert texts[representative] == text
    # within the limits
    for batch in plan.batches:
        longest_source = max(len(sources[i]) for i in batch)
        assert len(batch) == 1 or len(batch) * longest_source <= max_tokens
        assert len(batch) <= (batch_size or len(batch))


def test_all_lines_are_in_a_shard_and_in_order(tmp_path: Path) -> None:
    text = (
        "".join(f"line {number}\u2028\n" for number in range(7)).encode()
        + b"\xff\n\nno line feed at the end"
    )
    (tmp_path / "text").write_bytes(text)
    for size in (1, 3, 10, 11):
        shards = list(cut(tmp_path / "text", size))
        assert [line for shard in shards for line in shard.read()] == text.split(b"\n")
        assert [shard.first_line for shard in shards] == list(range(1, 11, size))
        names = [shard.name for shard in shards]
        assert names == sorted(names)
        assert sum(shard.size for shard in shards) == 10


def test_a_gzipped_file_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with refused_with(r"pipe: is a pipe; give a file"):
        list(cut(tmp_path / "pipe", 5))
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"one\n"))
    with refused_with(r"text.gz: is gzipped; unpack it, or pipe it"):
        list(cut(tmp_path / "text.gz", 5))
