"""Which shards are finished, and which folders are refused."""

from pathlib import Path

import pytest

from fairseq_aggdec.bulk.batches import BatchShard
from fairseq_aggdec.bulk.folder import Decoded, ShardFolder
from tests.support.helpers import refused_with

SHARD = BatchShard("train", 0, [[3, 4]])
INPUTS = {"train": "as it is"}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with one shard."""
    folder = ShardFolder(tmp_path / "out", {"--beam": 4}, INPUTS)
    assert not folder.is_finished(SHARD)
    folder.write(SHARD, Decoded(["eins", ""], ["train\t4\ttoo long"]))
    return folder.path


def test_a_shard_is_finished_when_it_is_written(written: Path) -> None:
    folder = ShardFolder(written, {"--beam": 4}, INPUTS)
    assert folder.is_finished(SHARD)
    assert (folder.read(SHARD), folder.skipped(SHARD)) == (
        ["eins", ""],
        ["train\t4\ttoo long"],
    )
    folder.outputs(SHARD).write_text("ei")
    with refused_with(r"train\.000000\.txt: has 0 lines for 2 sentences; delete it"):
        folder.read(SHARD)


def test_other_settings_and_changed_inputs_are_named_and_further_inputs_taken(
    written: Path,
) -> None:
    with refused_with(r"out: was begun with other settings \(--beam: 5 now, 4 there\)"):
        ShardFolder(written, {"--beam": 5}, INPUTS)
    ShardFolder(written, {"--beam": 4}, {"valid": "another"})
    for changed in ("train", "valid"):
        with refused_with(
            f"out: holds outputs of {changed} as it was before a change; go on with"
        ):
            ShardFolder(written, {"--beam": 4}, {changed: "changed"})
    (written / "manifest.json").write_text('{"--be')
    with refused_with(
        r"manifest\.json: not JSON .*; go on with those, delete the folder"
    ):
        ShardFolder(written, {"--beam": 4}, INPUTS)


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("mine")
    with refused_with("holds files of something else; name a folder of its own"):
        ShardFolder(tmp_path, {}, INPUTS)
    with refused_with(r"mine\.tsv: is a file; name a folder"):
        ShardFolder(tmp_path / "mine.tsv", {}, INPUTS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.tsv"]
