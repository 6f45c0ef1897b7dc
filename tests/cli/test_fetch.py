"""Fetching an experiment's data sets, without a network."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.cli import fetch
from fairseq_aggdec.errors import AggdecError

ASK = {"ask": "licensed: ask its makers"}
PART = {"original": "pairs.m2", "format": "m2", "sides": ["src", "tgt"]}
DESCRIPTION = {"originals": {"pairs.m2": ASK}, "text": {"train": {"parts": [PART]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment with two data sets, of which nothing is there but their descriptions."""
    (tmp_path / "descriptions").mkdir()
    OmegaConf.save(OmegaConf.create(DESCRIPTION), tmp_path / "descriptions/learners.yaml")
    weights = {"originals": {"weights.bin": ASK}, "files": {"model.bin": {"original": "weights.bin"}}}
    OmegaConf.save(OmegaConf.create(weights), tmp_path / "descriptions/model.yaml")
    (tmp_path / "prepare.yaml").write_text("data_sets: [learners, model]\n")
    return tmp_path


def run(folder: Path) -> None:
    places = ["--descriptions", str(folder / "descriptions"), "--data", str(folder / "data")]
    fetch.main([str(folder / "prepare.yaml"), *places])


def put(folder: Path, name: str, text: str) -> None:
    path = folder / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_is_missing_of_all_sets_is_said_at_once_and_taken_when_it_was_put_there(folder: Path) -> None:
    with pytest.raises(AggdecError) as caught:
        run(folder)
    message = str(caught.value)
    for name in ("learners/originals/pairs.m2", "model/originals/weights.bin"):
        assert f"put it at {folder / 'data' / name}" in message
    assert message.count("licensed: ask its makers") == 2
    put(folder, "model/originals/weights.bin", "weights")
    with pytest.raises(AggdecError, match="data set learners: 1 files are missing"):
        run(folder)
    put(folder, "learners/originals/pairs.m2", "S He go\nA 1 2|||V|||goes|||REQUIRED|||-NONE-|||0\n")
    run(folder)
    assert (folder / "data/learners/train.src").read_text() == "He go\n"
    assert (folder / "data/learners/train.tgt").read_text() == "He goes\n"
    assert (folder / "data/model/model.bin").read_text() == "weights"
    stamp = (folder / "data/model/model.bin").stat().st_mtime_ns
    run(folder)  # does nothing
    assert (folder / "data/model/model.bin").stat().st_mtime_ns == stamp
    (folder / "prepare.yaml").write_text("data_sets: [lerners]\n")
    with pytest.raises(AggdecError, match=r"unknown data set lerners: .*descriptions describes learners, model"):
        run(folder)
