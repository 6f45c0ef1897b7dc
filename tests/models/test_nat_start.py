"""Tests of `fairseq_aggdec.checkpoint_tools.nat_start` and of its command."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.small_verbs import nat_start as command
from fairseq_aggdec.errors import AggdecError

SHAPE = {"encoder_layers": 2, "decoder_layers": 1, "share_all_embeddings": True, "encoder_normalize_before": True}


def test_other_models_are_refused_by_name(tmp_path: Path) -> None:
    torch.save({"model": {"weight": torch.ones(1)}, "args": Namespace()}, tmp_path / "lm.pt")
    with pytest.raises(AggdecError, match=r"lm\.pt: no Transformer encoder-decoder"):
        command([str(tmp_path / "lm.pt"), "cmlm_transformer", "--output", str(tmp_path / "start.pt")])
    assert not (tmp_path / "start.pt").exists()
