"""Which shards are finished."""

from pathlib import Path

import pytest

from fairseq_aggdec.bulk.output_folder import OutputFolder
from fairseq_aggdec.bulk.shards import DecodedShard, Shard, cut
from fairseq_aggdec.errors import AggdecError


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    (tmp_path / "text").write_text("one\ntwo\n")
    return next(cut(tmp_path / "text", 5))


def written(folder: Path, shard: Shard) -> OutputFolder:
    output = OutputFolder(folder, {"--beam": 4})
    output.write(DecodedShard(shard, ["eins", ""], [(2, "too long")]))
    return output


def test_a_shard_is_finished_when_it_is_written_and_not_before(tmp_path: Path, shard: Shard) -> None:
    assert not OutputFolder(tmp_path / "out", {"--beam": 4}).is_finished(shard)
    output = written(tmp_path / "out", shard)
    assert output.is_finished(shard)
    assert output.outputs(shard).read_text() == "eins\n\n"
    assert output.report([shard]) == [(shard.path, 2, "too long")]
    assert output.skipped_file.read_text() == f"{shard.path}\t2\ttoo long\n"
    output.outputs(shard).write_text("ei")  # torn
    assert not output.is_finished(shard)


def test_outputs_of_other_lines_are_not_mixed_in_and_can_be_deleted(tmp_path: Path, shard: Shard) -> None:
    output = written(tmp_path / "out", shard)
    Path(shard.path).write_text("one\nthree\n")
    [changed] = cut(Path(shard.path), 5)
    with pytest.raises(AggdecError, match=r"text.000000.txt: was made from other lines than .*text has there now"):
        output.is_finished(changed)
    output.outputs(changed).unlink()
    assert not output.is_finished(changed)


def test_other_settings_are_named(tmp_path: Path, shard: Shard) -> None:
    written(tmp_path / "out", shard)
    with pytest.raises(AggdecError, match=r"out: was begun with other settings \(--beam: 5 now, 4 there\)"):
        OutputFolder(tmp_path / "out", {"--beam": 5})
