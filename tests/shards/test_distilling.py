"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped."""

import shutil
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.distilling import Teacher
from tests.helpers import ToyModel
from tests.shards.distilling import Distil, contents


def test_aggressive_beam_search_gives_the_same_bytes(distil: Distil, distilled: Path, tmp_path: Path) -> None:
    found, expected = contents(distil(tmp_path / "out", "--decoding", "aggressive-beam")), contents(distilled)
    record = found["distillation.json"].replace(b'"decoding": "aggressive-beam"', b'"decoding": "beam"')
    assert found | {"distillation.json": record} == expected


def test_ranks_and_workers_write_what_one_process_does(
    distil: Distil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subsets = ("--subset", "test,valid", "--shard-sentences", "20")
    expected = contents(distil(tmp_path / "whole", *subsets))
    assert contents(distil(tmp_path / "two", *subsets, "--workers", 2)) == expected
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        assert not distil(tmp_path / "ranks", *subsets).exists()
    monkeypatch.delenv("RANK")
    monkeypatch.setattr(Teacher, "decode", None)  # all is decoded
    assert contents(distil(tmp_path / "ranks", *subsets)) == expected


def test_shards_of_other_settings_or_data_are_refused(distil: Distil, toy_model_dir: ToyModel, tmp_path: Path) -> None:
    subset, output = ("--subset", "valid"), tmp_path / "out"
    shutil.rmtree(distil(output, *subset))
    with pytest.raises(AggdecError, match=r"out\.shards: was begun with other settings \(lenpen: 2\.0 now, 1\.0 there"):
        distil(output, *subset, "--lenpen", 2)
    other = tmp_path / "other"
    shutil.copytree(toy_model_dir.data, other)
    with (other / "valid.src-tgt.src.bin").open("r+b") as file:
        file.write(b"\x09")
    with pytest.raises(AggdecError, match=r"out\.shards: holds outputs of valid as it was before a change"):
        distil(output, *subset, data=other)
    assert not output.exists()
