"""One shard through a teacher that only counts, stopped and gone on with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.distillation.data_bin import DataBin, Tokens
from fairseq_aggdec.distillation.settings import ShardSettings
from fairseq_aggdec.distillation.shard_decoding import decode_shard
from fairseq_aggdec.distillation.shard_file import ShardName


class Stopped(Exception):  # noqa: N818
    """In place of a kill."""


class Echo:
    """Translates a sentence to itself; stops before a batch, if told to."""

    def __init__(self, stop_before: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self.stop_before = stop_before
        self.fresh = False

    def start_afresh(self) -> None:
        self.fresh = True

    def translate(self, numbers: Sequence[int], sources: Sequence[Tokens]) -> list[Tokens]:
        if len(self.batches) == self.stop_before:
            raise Stopped
        assert self.fresh, "what was learnt from another batch could decide a near-tie"
        self.fresh = False
        self.batches.append(list(numbers))
        return [source.astype(np.int32) for source in sources]


def settings_of(data: DataBin, longest: int) -> ShardSettings:
    return ShardSettings("train", data.fingerprint("train"), ["0" * 64], longest, max_tokens=40)


def run(folder: Path, data: DataBin, echo: Echo, shard: int = 0, shards: int = 1, longest: int = 64) -> ShardName:
    name = ShardName(folder, "train", shard, shards)
    decode_shard(name, settings_of(data, longest), data, echo)  # type: ignore[arg-type]
    return name


def test_a_stopped_shard_goes_on_with_the_next_batch(small_data: DataBin, tmp_path: Path) -> None:
    whole = Echo()
    expected = run(tmp_path / "whole", small_data, whole).path.read_bytes()
    assert len(whole.batches) > 5
    first, second = Echo(stop_before=3), Echo()
    with pytest.raises(Stopped):
        run(tmp_path, small_data, first)
    name = run(tmp_path, small_data, second)
    assert first.batches + second.batches == whole.batches
    assert name.path.read_bytes() == expected
    again = Echo()
    run(tmp_path, small_data, again)
    assert again.batches == []
