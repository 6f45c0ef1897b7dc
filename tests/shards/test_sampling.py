"""A part of a data folder: which sentences it has."""

from pathlib import Path

from fairseq_aggdec.shards.data_bin import DataBin, write_sample


def sentences(data: DataBin, split: str) -> list[tuple[list[int], list[int]]]:
    source, target = data.source(split), data.target(split)
    return [(source[number].tolist(), target[number].tolist()) for number in range(len(source))]


def test_a_sample_has_whole_pairs_in_their_order_and_always_the_same(toy_data: Path, tmp_path: Path) -> None:
    data = DataBin.find(toy_data)
    sample = write_sample(tmp_path / "part", data, {"train": 50, "valid": 1000})
    drawn, pairs = sentences(sample, "train"), iter(sentences(data, "train"))
    assert len(drawn) == 50
    assert all(pair in pairs for pair in drawn)  # each one behind the one before
    assert drawn != sentences(data, "train")[:50]
    assert sentences(sample, "valid") == sentences(data, "valid")
    assert sample.target_dictionary == data.target_dictionary
    assert not list(sample.folder.glob("test*"))

    stamp = sample.folder.stat().st_mtime_ns
    assert write_sample(tmp_path / "part", data, {"train": 50, "valid": 1000}) == sample
    assert sample.folder.stat().st_mtime_ns == stamp
    (tmp_path / "again.partial").mkdir()  # of a run that was killed
    (tmp_path / "again.partial/train").touch()
    assert sentences(write_sample(tmp_path / "again", data, {"train": 50}), "train") == drawn
