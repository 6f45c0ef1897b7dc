"""Tests of `fairseq_aggdec.checkpoint_tools.nat_start` and of its command."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.checkpoint_tools.nat_start import TABLES, nat_start
from fairseq_aggdec.cli.small_verbs import nat_start as command
from fairseq_aggdec.errors import AggdecError
from tests.random_models import dictionary, random_model
from tests.random_nat import build_nat, nat_args

SHAPE = {"encoder_layers": 2, "decoder_layers": 1, "share_all_embeddings": True, "encoder_normalize_before": True}


@pytest.mark.parametrize("architecture", TABLES)
def test_fairseq_takes_all_of_it(architecture: str) -> None:
    words = dictionary(9)
    verifier = random_model(1, words, words, **SHAPE)
    start = nat_start({"model": verifier.state_dict(), "args": Namespace()}, architecture)
    model = build_nat(nat_args(architecture, **SHAPE, early_exit="1,1,1"), words)
    model.load_state_dict(start["model"], strict=True)
    assert torch.equal(model.decoder.layers[0].fc1.weight, verifier.decoder.layers[0].fc1.weight)
    added = set(start["model"]) - set(verifier.state_dict())
    assert added == {f"decoder.{name}.weight" for name in TABLES[architecture]}
    for name in added:
        table = start["model"][name]
        assert table.float().std() == pytest.approx(table.size(1) ** -0.5, rel=0.25)
    again = nat_start({"model": verifier.state_dict(), "args": Namespace()}, architecture)
    assert all(torch.equal(again["model"][name], start["model"][name]) for name in added)


def test_other_models_are_refused_by_name(tmp_path: Path) -> None:
    torch.save({"model": {"weight": torch.ones(1)}, "args": Namespace()}, tmp_path / "lm.pt")
    with pytest.raises(AggdecError, match=r"lm\.pt: no Transformer encoder-decoder"):
        command([str(tmp_path / "lm.pt"), "cmlm_transformer", "--output", str(tmp_path / "start.pt")])
    assert not (tmp_path / "start.pt").exists()
