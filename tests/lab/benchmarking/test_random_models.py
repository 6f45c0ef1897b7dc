"""Tests of `fairseq_aggdec.lab.benchmarking.random_models`."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.models.transformer import base_architecture

from fairseq_aggdec.lab.benchmarking.random_models import RandomModel
from fairseq_aggdec.models.sizes import SIZES
from fairseq_aggdec.tasks.loading import load
from tests.lab.benchmarking.tiny import tiny_model


@pytest.mark.parametrize(
    ("name", "layers", "width"),
    [("base", (6, 6), 512), ("big", (6, 6), 1024), ("big-9-3", (9, 3), 1024), ("bart-12-2", (12, 2), 1024)],
)
def test_sizes_are_those_of_the_papers(name: str, layers: tuple[int, int], width: int) -> None:
    args = Namespace(**SIZES[name].options())
    base_architecture(args)
    assert (args.encoder_layers, args.decoder_layers) == layers
    assert args.encoder_embed_dim == args.decoder_embed_dim == width
    assert args.encoder_ffn_embed_dim == args.decoder_ffn_embed_dim == 4 * width
    assert args.decoder_attention_heads * 64 == width
    assert args.layernorm_embedding == (name == "bart-12-2")


def test_the_same_model_is_made_again_and_taken_where_it_is(tiny: RandomModel, tmp_path: Path) -> None:
    again = tiny_model(tmp_path)
    _, (first,) = load(str(tiny.checkpoint), str(tiny.folder), "src", "tgt")
    _, (second,) = load(str(again.checkpoint), str(tmp_path), "src", "tgt")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    written = again.checkpoint.stat().st_mtime_ns
    tiny_model(tmp_path)
    assert again.checkpoint.stat().st_mtime_ns == written
