"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.bulk.running import Workers
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.train.distilling import Teacher
from fairseq_aggdec.train.distilling import distil as distil_data
from tests.support.helpers import ToyModel
from tests.train.distilling import Distil, contents


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


def test_what_is_not_decoded_in_time_is_left_out(toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path) -> None:
    search = SearchOptions(beam=1, max_len_b=5)
    teacher = Teacher(str(toy_model_dir.checkpoint), small_data, search, cpu=True)
    distil_data(teacher, tmp_path / "out", ["train"], Workers(), max_tokens=60, shard_sentences=10, until=0)
    made = DataBin(tmp_path / "out", "src", "tgt")
    assert 10 <= len(made.source("train")) == len(made.target("train")) < len(small_data.source("train")) / 2


def test_an_ensemble_is_not_one_of_its_models(toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    generator = torch.Generator().manual_seed(1)
    for weight in state["model"].values():
        if weight.dim() == 2:
            weight += 0.05 * torch.randn(weight.shape, generator=generator)
    other = tmp_path / "other.pt"
    torch.save(state, other)
    sources, search = [small_data.source("train")[number] for number in range(8)], SearchOptions(beam=2, max_len_b=8)
    first, second, both = (
        [target.tolist() for target in Teacher(str(path), small_data, search, cpu=True).translate(range(8), sources)]
        for path in (toy_model_dir.checkpoint, other, f"{toy_model_dir.checkpoint}:{other}")
    )
    assert both not in (first, second)
