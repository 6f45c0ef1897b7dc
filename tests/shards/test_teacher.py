import shutil
from pathlib import Path

import pytest
import torch

import fairseq_aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.data_bin import DataBin
from fairseq_aggdec.shards.distilling import Teacher
from fairseq_aggdec.shards.settings import SearchOptions
from tests.helpers import ToyModel

SEARCH = SearchOptions(beam=2, max_len_b=8)


@pytest.fixture(scope="module")
def small_data(toy_data: Path) -> DataBin:
    fairseq_aggdec.register()
    return DataBin.find(toy_data)


def test_an_ensemble_is_not_one_of_its_models(toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    generator = torch.Generator().manual_seed(1)
    for weight in state["model"].values():
        if weight.dim() == 2:
            weight += 0.05 * torch.randn(weight.shape, generator=generator)
    other = tmp_path / "other.pt"
    torch.save(state, other)
    sources = [small_data.source("test")[number] for number in range(8)]
    first, second, both = (
        [target.tolist() for target in Teacher(str(path), small_data, SEARCH, cpu=True).translate(range(8), sources)]
        for path in (toy_model_dir.checkpoint, other, f"{toy_model_dir.checkpoint}:{other}")
    )
    assert both not in (first, second)


def test_a_precision_that_the_search_would_not_have_is_refused(toy_model_dir: ToyModel, small_data: DataBin) -> None:
    with pytest.raises(AggdecError, match="--bf16: fairseq's own search has no bfloat16 on a CPU; add --decoding"):
        _ = Teacher(str(toy_model_dir.checkpoint), small_data, SEARCH, precision="bf16", cpu=True).longest_source


def test_other_dictionaries_are_refused(toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(small_data.folder, folder)
    for lang in ("src", "tgt"):
        with (folder / f"dict.{lang}.txt").open("a") as file:
            file.write("elephant 1\n")
    with pytest.raises(AggdecError, match=r"checkpoint .*checkpoint_last.pt: does not fit the dictionaries in .*data"):
        _ = Teacher(str(toy_model_dir.checkpoint), DataBin.find(folder), SEARCH, cpu=True).longest_source
