"""Parts of fairseq's Transformer: its layers, position embeddings and masks, and a decoder layer run over R blocks.

Each block attends to itself and to a common prefix. The layer's forward takes one sequence and one mask: R blocks
of k positions after a prefix of W would need a mask of (W + R k) x (W + R k), most of it hidden. Here only the visible
scores are computed.
"""

import math
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from fairseq.models import FairseqDecoder, FairseqEncoder
from fairseq.modules import (
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
)
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

Layer: TypeAlias = TransformerEncoderLayerBase | TransformerDecoderLayerBase
PositionEmbedding: TypeAlias = (
    SinusoidalPositionalEmbedding | LearnedPositionalEmbedding
)


def layers_of(stack: FairseqEncoder | FairseqDecoder) -> list[Layer]:
    """The layers of fairseq's encoder or decoder; iterating over the list itself applies LayerDrop in training."""
    return [stack.layers[number] for number in range(len(stack.layers))]


def position_table(module: PositionEmbedding, length: int, like: Tensor) -> Tensor:
    """fairseq's learned or sinusoidal embeddings of positions from 0 on, N x D, contiguous.

    Sinusoidal embeddings are computed on demand, for N of at least `length`, in the type of `like`.
    """
    first = module.padding_idx + 1
    if not isinstance(module, SinusoidalPositionalEmbedding):
        return module.weight[first:].contiguous()
    if first + length > module.weights.size(0):
        larger = module.get_embedding(
            2 * (first + length), module.embedding_dim, module.padding_idx
        )
        module.weights = larger.to(module.weights)
    return module.weights[first:].to(like).contiguous()


def look_up(table: Tensor, positions: Tensor) -> Tensor:
    """Position embeddings, ... -> ... x D; positions beyond the table, after the longest output, get the last one."""
    return F.embedding(positions.clamp(max=table.size(0) - 1), table)


def additive_mask(hidden: Tensor, like: Tensor) -> Tensor:
    """A mask to add to attention scores: minus infinity where `hidden` is true, else 0, in the type of `like`."""
    return torch.zeros(
        hidden.shape, dtype=like.dtype, device=hidden.device
    ).masked_fill_(hidden, -math.inf)


class KeysValues(NamedTuple):
    """Keys and values that all blocks of a sentence may attend to."""

    keys: Tensor
    """B x H x N x D/H."""
    values: Tensor
    """B x H x N x D/H."""


def keys_values(attention: MultiheadAttention, x: Tensor) -> KeysValues:
    """The keys and values of fairseq's `MultiheadAttention` for vectors, B x N x C."""
    heads = attention.num_heads
    return KeysValues(
        _split(attention.k_proj(x), heads), _split(attention.v_proj(x), heads)
    )


def run_layer(
    layer: TransformerDecoderLayerBase,
    x: Tensor,
    cross: KeysValues,
    cross_mask: Tensor | None,
    block_mask: Tensor | None = None,
    prefix: KeysValues | None = None,
    prefix_mask: Tensor | None = None,
) -> tuple[Tensor, KeysValues]:
    """`TransformerDecoderLayerBase.forward`, dropout included, for R blocks of n positions.

    Args:
        layer: fairseq's `TransformerDecoderLayerBase`.
        x: the blocks, B x R x n x D.
        cross: keys and values of the source, the same for every block.
        cross_mask: additive mask of the source, broadcast to B x H x (R n) x S; None hides nothing.
        block_mask: additive mask of a block over itself, broadcast to B x H x R x n x n; None hides nothing.
        prefix: keys and values of earlier positions; None where there are none.
        prefix_mask: additive mask of the prefix, broadcast to B x H x R x n x W; None hides nothing.

    Returns:
        The layer's output, B x R x n x D, and the blocks' keys and values (N = R n).
    """

    def before(norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if layer.normalize_before else x

    def after(norm: nn.Module, x: Tensor) -> Tensor:
        return x if layer.normalize_before else norm(x)

    norm = layer.self_attn_layer_norm
    attended, of_blocks = _attended_to_itself(
        layer.self_attn, before(norm, x), block_mask, prefix, prefix_mask
    )
    x = after(norm, x + layer.dropout_module(attended))
    norm = layer.encoder_attn_layer_norm
    attended = _attended_to_source(
        layer.encoder_attn, before(norm, x), cross, cross_mask
    )
    x = after(norm, x + layer.dropout_module(attended))
    norm = layer.final_layer_norm
    inner = layer.activation_dropout_module(
        layer.activation_fn(layer.fc1(before(norm, x)))
    )
    return after(norm, x + layer.dropout_module(layer.fc2(inner))), of_blocks


def _attended_to_itself(
    attention: MultiheadAttention,
    x: Tensor,
    block_mask: Tensor | None,
    prefix: KeysValues | None,
    prefix_mask: Tensor | None,
) -> tuple[Tensor, KeysValues]:
    """Attention of blocks to themselves and the prefix, B x R x n x D, and their keys and values; see `run_layer`."""
    blocks = x.shape[1:3]
    flat = x.flatten(1, 2)  # B x (R n) x D
    query = _split(attention.q_proj(flat) * attention.scaling, attention.num_heads)
    of_blocks = keys_values(attention, flat)
    # B x H x R x n x D/H
    block_keys, block_values = (part.unflatten(2, blocks) for part in of_blocks)
    # B x H x R x n x n
    scores = query.unflatten(2, blocks) @ block_keys.transpose(-1, -2)
    if block_mask is not None:
        scores = scores + block_mask
    if prefix is not None:
        # B x H x R x n x W
        before = (query @ prefix.keys.transpose(-1, -2)).unflatten(2, blocks)
        scores = torch.cat(
            [scores, before if prefix_mask is None else before + prefix_mask], dim=-1
        )
    weights = attention.dropout_module(scores.softmax(dim=-1))
    # B x H x (R n) x D/H
    attended = (weights[..., : blocks[1]] @ block_values).flatten(2, 3)
    if prefix is not None:
        attended = attended + weights[..., blocks[1] :].flatten(2, 3) @ prefix.values
    return attention.out_proj(_join(attended)).view_as(x), of_blocks


def _attended_to_source(
    attention: MultiheadAttention,
    x: Tensor,
    cross: KeysValues,
    cross_mask: Tensor | None,
) -> Tensor:
    """Attention of blocks to the source, B x R x n x D; see `run_layer`."""
    query = _split(
        attention.q_proj(x.flatten(1, 2)) * attention.scaling, attention.num_heads
    )
    scores = query @ cross.keys.transpose(-1, -2)  # B x H x (R n) x S
    if cross_mask is not None:
        scores = scores + cross_mask
    attended = attention.dropout_module(scores.softmax(dim=-1)) @ cross.values
    return attention.out_proj(_join(attended)).view_as(x)


def _split(x: Tensor, heads: int) -> Tensor:
    """B x N x D -> B x H x N x D/H."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _join(x: Tensor) -> Tensor:
    """B x H x N x D/H -> B x N x D."""
    return x.transpose(1, 2).flatten(2)
