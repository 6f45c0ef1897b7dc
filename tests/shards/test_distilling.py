"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped."""

from pathlib import Path

import pytest

from fairseq_aggdec.shards.distilling import Teacher
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
