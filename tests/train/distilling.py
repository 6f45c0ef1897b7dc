"""A distillation of toy data that the tests compare theirs with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.cli.verbs import main as aggdec
from tests.support.helpers import ToyModel

SETTINGS = "--cpu --beam 3 --max-tokens 60 --max-len-b 15 --max-source-len 40".split()
"""About sixty batches; the sentences of 60 tokens are skipped."""

Distil = Callable[..., Path]


@pytest.fixture(scope="session")
def distil(toy_model_dir: ToyModel) -> Distil:
    """Runs aggdec distill on the toy data with its model as the teacher; returns the output folder."""

    def run(output: Path, *options: object, data: Path = toy_model_dir.data, settings: list[str] = SETTINGS) -> Path:
        teacher = ["--teacher", toy_model_dir.checkpoint]
        aggdec(["distill", *map(str, (data, output, *teacher, *settings, *options))])
        return output

    return run


@pytest.fixture(scope="session")
def distilled(distil: Distil, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one uninterrupted run makes."""
    return distil(tmp_path_factory.mktemp("distilled") / "out")


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def small_data(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> DataBin:
    """The same dictionaries with the test set as the training split: 60 sentences, two of them long."""
    folder = tmp_path_factory.mktemp("small_data")
    for path in toy_data.glob("dict.*.txt"):
        shutil.copyfile(path, folder / path.name)
    for path in toy_data.glob("test.src-tgt.*"):
        shutil.copyfile(path, folder / path.name.replace("test", "train", 1))
    return DataBin.find(folder)
