"""Binarised data as fairseq-preprocess made it: what is found, what is refused, what tells two of them apart."""

import os
import shutil
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.data_bin import DataBin


@pytest.fixture
def data(toy_data: Path, tmp_path: Path) -> DataBin:
    """A copy to be written to."""
    shutil.copytree(toy_data, tmp_path / "bin")
    return DataBin.find(tmp_path / "bin")


def copy_split(data: DataBin, source: str, target: str) -> None:
    for path in list(data.folder.glob(f"{source}.src-tgt.*")):
        shutil.copyfile(path, data.folder / path.name.replace(source, target, 1))


def test_training_splits_in_their_order(data: DataBin) -> None:
    for name in ("train10", "train2", "train1", "training"):
        copy_split(data, "valid", name)
    assert data.training_splits() == ["train", "train1", "train2", "train10"]
    for path in data.folder.glob("train*"):
        path.unlink()
    with pytest.raises(AggdecError, match=r"has no training split \(train\.src-tgt\.src\.idx\)"):
        data.training_splits()


def test_what_cannot_be_used_is_named(data: DataBin) -> None:
    with pytest.raises(AggdecError, match=r"has no dict\.xx\.txt; check --source-lang"):
        DataBin.find(data.folder, "xx", "tgt")
    with pytest.raises(AggdecError, match=r"dev\.src-tgt\.src\.idx and \.bin: not binarised data"):
        data.source("dev")
    for suffix in ("idx", "bin"):
        shutil.copyfile(data.folder / f"test.src-tgt.tgt.{suffix}", data.folder / f"valid.src-tgt.tgt.{suffix}")
    with pytest.raises(AggdecError, match=r"valid\.src-tgt\.tgt: 60 targets, but 15 sources"):
        data.target("valid")
    for size, message in (
        (100, r"test\.src-tgt\.tgt\.bin: truncated: shorter than its \.idx says"),
        (0, "holds no sentences"),
    ):
        os.truncate(data.folder / "test.src-tgt.tgt.bin", size)
        with pytest.raises(AggdecError, match=message):
            data.target("test")
