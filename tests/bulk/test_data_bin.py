"""Binarised data as fairseq-preprocess made it: what is found, what is refused, what tells two of them apart."""

import os
import shutil
from pathlib import Path

import pytest

from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from tests.support.helpers import refused_with


@pytest.fixture
def data(toy_data: Path, tmp_path: Path) -> DataBin:
    """A copy to be written to."""
    shutil.copytree(toy_data, tmp_path / "bin")
    return DataBin.find(tmp_path / "bin")


def test_training_splits_in_their_order(data: DataBin) -> None:
    for name in ("train10", "train2", "train1", "training"):
        for path in list(data.folder.glob("valid.src-tgt.*")):
            shutil.copyfile(path, data.folder / path.name.replace("valid", name, 1))
    assert data.training_splits() == ["train", "train1", "train2", "train10"]
    for path in data.folder.glob("train*"):
        path.unlink()
    with refused_with(r"has no training split \(train\.src-tgt\.src\.idx\)"):
        data.training_splits()


def test_what_cannot_be_used_is_named(data: DataBin) -> None:
    with refused_with(r"has no dict\.xx\.txt; check --source-lang"):
        DataBin.find(data.folder, "xx", "tgt")
    with refused_with(r"dev\.src-tgt\.src\.idx and .* another data folder .*--data"):
        data.source("dev")
    for suffix in ("idx", "bin"):
        shutil.copyfile(
            data.folder / f"test.src-tgt.tgt.{suffix}",
            data.folder / f"valid.src-tgt.tgt.{suffix}",
        )
    with refused_with(r"valid\.src-tgt\.tgt: 60 targets, but 15 sources"):
        data.target("valid")
    for size, message in (
        (100, r"test\.src-tgt\.tgt\.bin: truncated: shorter than its \.idx says"),
        (0, "holds no sentences"),
    ):
        os.truncate(data.folder / "test.src-tgt.tgt.bin", size)
        with refused_with(message):
            data.target("test")


def sentences(data: DataBin, split: str) -> list[tuple[list[int], list[int]]]:
    source = data.source(split)
    target = data.target(split)
    return [
        (source[number].tolist(), target[number].tolist())
        for number in range(len(source))
    ]


def test_a_sample_has_whole_pairs_in_their_order_and_always_the_same(
    toy_data: Path, tmp_path: Path
) -> None:
    data = DataBin.find(toy_data)
    sample = write_sample(tmp_path / "part", data, {"train": 50, "valid": 1000})
    drawn = sentences(sample, "train")
    pairs = iter(sentences(data, "train"))
    assert len(drawn) == 50
    assert all(pair in pairs for pair in drawn)  # each one behind the one before
    assert drawn != sentences(data, "train")[:50]
    assert sentences(sample, "valid") == sentences(data, "valid")
    assert sample.target_dictionary == data.target_dictionary
    assert not list(sample.folder.glob("test*"))
    (tmp_path / "again.partial").mkdir()  # of a run that was killed
    (tmp_path / "again.partial/train").touch()
    assert (
        sentences(write_sample(tmp_path / "again", data, {"train": 50}), "train")
        == drawn
    )
