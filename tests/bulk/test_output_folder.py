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


def test_outputs_of_lines_that_a_shorter_file_no_longer_has_are_refused(tmp_path: Path) -> None:
    """They would come after its own where all files of outputs are joined."""
    text = tmp_path / "text"
    text.write_text("one\ntwo\nthree\n")
    output = OutputFolder(tmp_path / "out", {})
    for shard in cut(text, 2):
        output.write(DecodedShard(shard, ["eins"], []))
    output.refuse_shards_behind(list(cut(text, 2)))
    text.write_text("one\ntwo\n")
    with pytest.raises(AggdecError, match=r"text\.000001\.txt: was made from other lines than text has now"):
        output.refuse_shards_behind(list(cut(text, 2)))


@pytest.mark.parametrize("damaged", ['{"sou', "[]", '{"source": 1}', ""])
def test_a_shard_with_a_damaged_record_is_decoded_again(damaged: str, tmp_path: Path, shard: Shard) -> None:
    output = written(tmp_path / "out", shard)
    (tmp_path / "out/records/text.000000.json").write_text(damaged)
    assert not output.is_finished(shard)


def test_damaged_settings_are_named(tmp_path: Path, shard: Shard) -> None:
    written(tmp_path / "out", shard)
    (tmp_path / "out/settings.json").write_text('{"--be')
    with pytest.raises(AggdecError, match=r"settings\.json: not JSON .*; choose another --output"):
        OutputFolder(tmp_path / "out", {"--beam": 4})


def test_other_settings_are_named(tmp_path: Path, shard: Shard) -> None:
    written(tmp_path / "out", shard)
    with pytest.raises(AggdecError, match=r"out: was begun with other settings \(--beam: 5 now, 4 there\)"):
        OutputFolder(tmp_path / "out", {"--beam": 5})


def test_settings_without_outputs_bind_nobody(tmp_path: Path, shard: Shard) -> None:
    """A mistaken option is met before there are outputs; the corrected command then goes on in the same folder."""
    mistaken = OutputFolder(tmp_path / "out", {"--beam": 4, "--min-len": 500})
    written(tmp_path / "out", shard)
    with pytest.raises(AggdecError, match=r"out: was begun with other settings \(--min-len: 500 now, None there\)"):
        mistaken.write(DecodedShard(shard, ["eins", ""], []))


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "skipped.tsv").write_text("mine")
    with pytest.raises(AggdecError, match="holds files of something else; name a folder of its own"):
        OutputFolder(tmp_path, {})
    with pytest.raises(AggdecError, match=r"skipped\.tsv: is a file; name a folder"):
        OutputFolder(tmp_path / "skipped.tsv", {})
    assert [path.name for path in tmp_path.iterdir()] == ["skipped.tsv"]
