"""Position embeddings that begin as coordinates."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.modules import PositionalEmbedding
from super_resolution.positions import coordinate_waves, start_from_coordinates
from super_resolution.tokens import ImageSizes

from fairseq_aggdec.errors import AggdecError


def model(sizes: ImageSizes, dim: int, learned: bool = True) -> Any:
    torch.manual_seed(1)
    encoder = PositionalEmbedding(sizes.input_tokens + 1, dim, 1, learned=learned)
    decoder = PositionalEmbedding(sizes.output_tokens + 1, dim, 1, learned=learned)
    return SimpleNamespace(
        encoder=SimpleNamespace(embed_positions=encoder),
        decoder=SimpleNamespace(embed_positions=decoder),
    )


def test_tables_hold_them() -> None:
    sizes = ImageSizes(2, 4, channels=3)
    started = model(sizes, 64)
    untouched = model(sizes, 64)
    start_from_coordinates(started, sizes)
    table, before = (one.decoder.embed_positions.weight for one in (started, untouched))
    assert table[:2].equal(before[:2])  # no position
    assert table[-1].equal(before[-1])  # that predicts EOS
    waves = (table - 0.5 * before)[2:-1] * 64**0.5
    assert torch.allclose(
        waves, coordinate_waves(4, 1.0, 4, 64).repeat_interleave(3, 0), atol=1e-5
    )
    assert not started.encoder.embed_positions.weight[2:-1].allclose(
        untouched.encoder.embed_positions.weight[2:-1]
    )


def test_refusals() -> None:
    sizes = ImageSizes(2, 4, 1)
    with pytest.raises(
        AggdecError, match="needs learned positions: add --encoder-learned-pos"
    ):
        start_from_coordinates(model(sizes, 16, learned=False), sizes)
    with pytest.raises(AggdecError, match="--encoder-embed-dim 18 is no multiple of 4"):
        start_from_coordinates(model(sizes, 18), sizes)
