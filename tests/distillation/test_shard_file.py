from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.distillation.settings import SearchOptions, ShardSettings
from fairseq_aggdec.distillation.shard_file import DecodedBatch, ShardName, open_shard, read_shard
from fairseq_aggdec.errors import AggdecError

SETTINGS = ShardSettings("train", {"source": "a" * 64}, ["b" * 64], 64, 100)
BATCHES = [1, 3, 5]


def batch(number: int) -> DecodedBatch:
    return DecodedBatch(number, [7 * number, 2], [np.array([number, 5, 2]), np.array([2])])


@pytest.fixture
def name(tmp_path: Path) -> ShardName:
    return ShardName(tmp_path / "shards", "train", 1, 2)


@pytest.fixture
def finished(name: ShardName) -> bytes:
    """The bytes of a finished shard."""
    with open_shard(name, SETTINGS, BATCHES) as shard:
        assert (shard.done, shard.cut) == (0, 0)
        for number in BATCHES:
            shard.write(batch(number))
    return name.path.read_bytes()


def test_written_and_read(name: ShardName, finished: bytes) -> None:
    settings, batches = read_shard(name)
    assert settings == SETTINGS
    assert [read.batch for read in batches] == BATCHES
    for read in batches:
        expected = batch(read.batch)
        assert read.sentences == expected.sentences
        assert [target.tolist() for target in read.targets] == [target.tolist() for target in expected.targets]
    assert ShardName.all_in(name.folder, "train") == [name]


def test_goes_on_from_wherever_it_was_torn(name: ShardName, finished: bytes) -> None:
    last = finished[:-1].rindex(b"\n")
    for size in [*range(0, last, 41), *range(last, len(finished), 3)]:
        name.path.write_bytes(finished[:size])
        if size == 0 or finished[size - 1 : size] != b"\n":
            with pytest.raises(AggdecError, match=r"shard 1 of 2 .*torn or damaged"):
                read_shard(name)
        with open_shard(name, SETTINGS, BATCHES) as shard:
            assert shard.done == max(0, finished[:size].count(b"\n") - 1)
            for number in BATCHES[shard.done :]:
                shard.write(batch(number))
        assert name.path.read_bytes() == finished


def test_other_settings_and_two_writers_are_refused(name: ShardName, finished: bytes) -> None:
    other = replace(SETTINGS, search=SearchOptions(beam=4))
    with pytest.raises(AggdecError, match="beam: 4 now, 5 in the file"), open_shard(name, other, BATCHES):
        pass
    with (
        open_shard(name, SETTINGS, BATCHES),
        pytest.raises(AggdecError, match="another process"),
        open_shard(name, SETTINGS, BATCHES),
    ):
        pass
    assert name.path.read_bytes() == finished


def test_missing_renamed_and_foreign_files_are_refused(name: ShardName, finished: bytes) -> None:
    other = replace(name, shard=0)
    with pytest.raises(AggdecError, match=r"shard 0 of 2 .*missing; .*--num-shards 2 --shard-id 0"):
        read_shard(other)
    other.path.write_bytes(finished)
    with pytest.raises(AggdecError, match=r"shard 0 of 2 .*another shard"):
        read_shard(other)
    with pytest.raises(AggdecError, match="holds batch 1, which is not the next one"), open_shard(name, SETTINGS, [3]):
        pass
