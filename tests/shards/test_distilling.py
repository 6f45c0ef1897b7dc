"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped."""

import shutil
import time
from pathlib import Path

import pytest

from fairseq_aggdec.cli import distill
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.batches import BatchShard
from fairseq_aggdec.shards.distilling import Teacher
from fairseq_aggdec.shards.folder import Decoded
from tests.helpers import ToBeKilled, ToyModel
from tests.shards.decoding import count, wait_for
from tests.shards.distilling import SETTINGS, Distil, contents


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


def slowly(arguments: list[str]) -> None:
    """The command in a child process, held up a little at each shard, so that there is time to kill it."""
    at_once = Teacher.decode

    def held_up(self: Teacher, shard: BatchShard) -> Decoded:
        time.sleep(0.1)
        return at_once(self, shard)

    Teacher.decode = held_up  # type: ignore[method-assign]
    distill.main(arguments)


def test_a_run_that_is_killed_goes_on(toy_model_dir: ToyModel, distil: Distil, distilled: Path, tmp_path: Path) -> None:
    output, shards, few = tmp_path / "out", tmp_path / "out.shards", ("--shard-sentences", 30)
    arguments = [toy_model_dir.data, output, "--teacher", toy_model_dir.checkpoint, *SETTINGS, *few]
    child = ToBeKilled(f"from tests.shards.test_distilling import slowly; slowly({[*map(str, arguments)]!r})", tmp_path)
    wait_for(lambda: count(shards) > 1 or not child.is_alive())
    child.kill()
    done = {path: path.stat().st_mtime_ns for path in shards.glob("*.txt")}
    assert done
    assert not output.exists()
    torn = tmp_path / "out.partial"  # of a run that was killed while it wrote the folder
    torn.mkdir()
    (torn / "left.over").write_text("")
    assert contents(distil(output, *few)) == contents(distilled)
    assert done == {path: path.stat().st_mtime_ns for path in done}, "what was finished is not done again"
    assert len(done) < count(shards)
