"""Tests of `fairseq_aggdec.lab.benchmarking.random_models`."""

from pathlib import Path

import torch

from fairseq_aggdec.lab.benchmarking.random_models import RandomModel
from fairseq_aggdec.tasks.loading import load
from tests.lab.benchmarking.tiny import tiny_model


def test_the_same_model_is_made_again_and_taken_where_it_is(tiny: RandomModel, tmp_path: Path) -> None:
    again = tiny_model(tmp_path)
    _, (first,) = load(str(tiny.checkpoint), str(tiny.folder), "src", "tgt")
    _, (second,) = load(str(again.checkpoint), str(tmp_path), "src", "tgt")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    written = again.checkpoint.stat().st_mtime_ns
    tiny_model(tmp_path)
    assert again.checkpoint.stat().st_mtime_ns == written
