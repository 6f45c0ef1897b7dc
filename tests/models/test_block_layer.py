"""Blocks after a common prefix against the layer's own forward pass over one long sequence."""

import math

import pytest
import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from fairseq_aggdec.models.block_layer import cross_keys_values, own_keys_values, run_layer

BATCH, PREFIX, BLOCKS, WIDTH, SOURCE, DIM, HEADS = 2, 5, 3, 4, 6, 8, 2


def random_layer(norm_first: bool) -> TransformerDecoderLayerBase:
    cfg = TransformerConfig()
    cfg.decoder.embed_dim = cfg.encoder.embed_dim = DIM
    cfg.decoder.ffn_embed_dim, cfg.decoder.attention_heads = 16, HEADS
    cfg.decoder.normalize_before = norm_first
    cfg.dropout = cfg.attention_dropout = 0.0
    torch.manual_seed(1)
    layer = TransformerDecoderLayerBase(cfg).eval()
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return layer


def stock(layer: TransformerDecoderLayerBase, x: Tensor, memory: Tensor, padding: Tensor, hidden: Tensor) -> Tensor:
    """The layer's own output, B x T x D, where position i does not see j if `hidden[i, j]`."""
    x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    output = layer(x, memory, encoder_padding_mask=padding, self_attn_mask=additive(hidden))[0]
    return output.transpose(0, 1)


@pytest.fixture
def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Prefix B x 1 x W x D, blocks B x R x n x D, memory B x S x D and its padding B x S."""
    torch.manual_seed(2)
    padding = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    padding[1, 4:] = True
    prefix, blocks = torch.randn(BATCH, 1, PREFIX, DIM), torch.randn(BATCH, BLOCKS, WIDTH, DIM)
    return prefix, blocks, torch.randn(BATCH, SOURCE, DIM), padding


def additive(hidden: Tensor) -> Tensor:
    return torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_a_prefix_alone_is_the_layers_own_forward(norm_first: bool, batch: tuple[Tensor, ...]) -> None:
    prefix, _, memory, padding = batch
    layer = random_layer(norm_first)
    future = torch.ones(PREFIX, PREFIX, dtype=torch.bool).triu(1)
    output, own = run_layer(
        layer, prefix, cross_keys_values(layer, memory), additive(padding)[:, None, None], additive(future)
    )
    expected = stock(layer, prefix[:, 0], memory, padding, future)
    torch.testing.assert_close(output[:, 0], expected, atol=1e-5, rtol=1e-5)
    kept = own_keys_values(layer, prefix)
    torch.testing.assert_close(own.keys, kept.keys)
    torch.testing.assert_close(own.values, kept.values)


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_blocks_see_their_prefix_and_themselves_but_not_each_other(norm_first: bool, batch: tuple[Tensor, ...]) -> None:
    """Block r sees the first r + 2 positions of the prefix."""
    prefix, blocks, memory, padding = batch
    layer = random_layer(norm_first)
    seen = torch.arange(BLOCKS) + 2
    hidden_prefix = torch.arange(PREFIX) >= seen[:, None]  # R x W
    output, own = run_layer(
        layer,
        blocks,
        cross_keys_values(layer, memory),
        additive(padding)[:, None, None],
        prefix=own_keys_values(layer, prefix),
        prefix_mask=additive(hidden_prefix)[:, None].expand(-1, WIDTH, -1),
    )
    assert output.shape == blocks.shape
    assert own.keys.shape == own.values.shape == (BATCH, HEADS, BLOCKS * WIDTH, DIM // HEADS)
    whole = torch.cat([prefix, blocks.flatten(1, 2)[:, None]], dim=2)[:, 0]  # B x (W + R n) x D
    block_of = torch.arange(BLOCKS).repeat_interleave(WIDTH)
    among = block_of[:, None] != block_of
    hidden = torch.cat([hidden_prefix[block_of], among], dim=1)
    hidden = torch.cat([torch.ones(PREFIX, PREFIX + BLOCKS * WIDTH, dtype=torch.bool).triu(1), hidden])
    expected = stock(layer, whole, memory, padding, hidden)[:, PREFIX:]
    torch.testing.assert_close(output.flatten(1, 2), expected, atol=1e-5, rtol=1e-5)
