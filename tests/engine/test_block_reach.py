"""Blocks whose queries see past themselves, and replaced embeddings, against fairseq's layers under a mask."""

import math
import random

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.engine.block_decoder import BlockDecoder
from tests.random_models import ENGINE_SHAPES, dictionary, model_of_shape, random_batch
from tests.scripted_decoding import examples

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(12)
WORDS = range(VOCABULARY.nspecial, len(VOCABULARY))


def embedded(model: FairseqEncoderDecoderModel, tokens: Tensor) -> Tensor:
    """What the decoder reads, before positions are added."""
    decoder = model.decoder
    x = decoder.embed_scale * decoder.embed_tokens(tokens)
    return x if decoder.project_in_dim is None else decoder.project_in_dim(x)


def stock_features(
    model: FairseqEncoderDecoderModel, sources: dict[str, Tensor], tokens: Tensor, sees: Tensor, replaced: Tensor
) -> Tensor:
    """fairseq's own layers over one row at once.

    Args:
        model: of any engine shape.
        sources: `net_input` of the row alone.
        tokens: L, what the decoder reads.
        sees: L x L, which positions (columns) each position sees.
        replaced: L x D, NaN where the token's own embedding is read.

    Returns:
        L x D.
    """
    decoder = model.decoder
    x = torch.where(replaced.isnan(), embedded(model, tokens), replaced)[None]
    if decoder.embed_positions is not None:
        x = x + decoder.embed_positions(torch.full_like(tokens, WORDS[0])[None])
    if decoder.layernorm_embedding is not None:
        x = decoder.layernorm_embedding(x)
    encoded = model.encoder(**sources)
    mask = torch.zeros(sees.shape).masked_fill(~sees, -math.inf)
    x = x.transpose(0, 1)
    for layer in decoder.layers:
        x = layer(x, encoded["encoder_out"][0], encoded["encoder_padding_mask"][0], self_attn_mask=mask)[0]
    if decoder.layer_norm is not None:
        x = decoder.layer_norm(x)
    x = x.transpose(0, 1)
    return (x if decoder.project_out_dim is None else decoder.project_out_dim(x))[0]


@pytest.mark.parametrize("shape", ENGINE_SHAPES)
@examples(5)
@given(st.integers(0, 10_000), st.integers(1, 3))
@torch.no_grad()
def test_queries_see_as_far_as_they_are_told(shape: str, seed: int, rows: int) -> None:
    """Three blocks a row, each some tokens that see themselves last and then one group that sees all of itself; only
    the tokens stay, as in a drafter that reads its causal prefix and masks behind it."""
    rng = random.Random(seed)
    model = model_of_shape(shape, seed, VOCABULARY, VOCABULARY)
    net_input = random_batch(seed, VOCABULARY, [rng.randint(1, 9) for _ in range(rows)])["net_input"]
    engine = BlockDecoder(model.decoder)
    engine.start(model.encoder(**net_input))
    dim = embedded(model, torch.tensor([0])).size(1)
    texts: list[list[int]] = [[] for _ in range(rows)]
    for _ in range(3):
        group = rng.randint(1, 4)
        new = [rng.randint(1, 4) for _ in range(rows)]
        width = max(new) + group
        starts = [len(text) for text in texts]
        block = torch.tensor([rng.choices(WORDS, k=width) for _ in range(rows)])
        embeddings = embedded(model, block)
        reach = torch.tensor(starts)[:, None] + torch.arange(width)
        replaced = torch.full((rows, width, dim), math.nan)
        for row in range(rows):
            reach[row, new[row] : new[row] + group] = starts[row] + new[row] + group - 1
            replaced[row, new[row] : new[row] + group] = torch.randn(group, dim)
        embeddings = torch.where(replaced.isnan(), embeddings, replaced)
        features = engine.features(block, torch.tensor(starts), max(starts), reach=reach, embeddings=embeddings)
        logits = engine.project(features)
        assert logits.shape == (rows, width, len(VOCABULARY))
        for row in range(rows):
            used = new[row] + group
            read = torch.tensor(texts[row] + block[row, :used].tolist())
            last = torch.cat([torch.arange(starts[row]), reach[row, :used]])
            sees = torch.arange(len(read)) <= last[:, None]
            own = torch.cat([torch.full((starts[row], dim), math.nan), replaced[row, :used]])
            sources = {name: tensor[row : row + 1] for name, tensor in net_input.items()}
            expected = stock_features(model, sources, read, sees, own)[starts[row] :]
            torch.testing.assert_close(features[row, :used], expected, atol=1e-5, rtol=1e-5)
            expected = model.decoder.output_projection(expected)
            torch.testing.assert_close(logits[row, :used], expected, atol=2e-5, rtol=1e-4)
            texts[row] += block[row, : new[row]].tolist()
