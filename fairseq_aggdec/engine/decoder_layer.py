"""One stock decoder layer over cached keys and values."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from fairseq_aggdec.decoding.roles import Ragged
from fairseq_aggdec.engine.arithmetic.linear import fused
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.kv_cache import KVCache
from fairseq_aggdec.engine.layers import Norm, attend, attend_in_products, split_heads


@dataclass(frozen=True)
class BlockShape:
    """Where the tokens of a block stand, and what they see."""

    last_start: int
    """the largest position of a row's first token"""
    keys: int
    """L, how many positions are attended to"""
    places: Tensor | None
    """from `KVCache.places`"""
    mask: Tensor | None
    """additive, B x 1 x W x L or W x L"""
    ragged: Ragged | None = None
    """None: all B x W are read"""


class DecoderLayer:
    """What `TransformerDecoderLayerBase.forward` computes without dropout, attention projections fused."""

    def __init__(self, layer: TransformerDecoderLayerBase, arithmetic: Arithmetic) -> None:
        """
        Args:
            layer: its weights are taken as they are now.
            arithmetic: of the products.
        """
        own, cross = layer.self_attn, layer.encoder_attn
        linear = partial(fused, arithmetic=arithmetic)
        self._dim, self._heads = own.embed_dim, own.num_heads
        order = torch.cat([torch.arange(self._dim), self._dim + head_by_head(own)])
        self._self_qkv = linear(own.q_proj, own.k_proj, own.v_proj, order=order)
        self._self_out = linear(own.out_proj)
        self._self_norm = Norm(layer.self_attn_layer_norm)
        self._cross_q = linear(cross.q_proj)
        self._cross_out = linear(cross.out_proj)
        self._cross_norm = Norm(layer.encoder_attn_layer_norm)
        self._fc1 = linear(layer.fc1, activation=layer.activation_fn)
        self._fc2 = linear(layer.fc2)
        self._final_norm = Norm(layer.final_layer_norm)
        self._norm_first = layer.normalize_before
        # in fixed shapes a token's result must not depend on how many rows and queries there are
        self._attend = attend if arithmetic.fixed_shapes else attend_in_products

    def __call__(
        self,
        x: Tensor,
        block: BlockShape,
        cache: KVCache,
        number: int,
        cross: Tensor,
        cross_mask: Tensor | None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """One layer's output.

        Args:
            x: B x W x D; ragged, N x D.
            block: its places and what it sees.
            cache: of the layers' own keys and values.
            number: the layer's, in the cache.
            cross: the source's keys and values, B x H x S x 2D/H, keys first.
            cross_mask: additive, B x 1 x 1 x S.
            wanted: the columns to return, B x k; None for all; not of a ragged block.
        """
        residual = x
        if self._norm_first:
            x = self._self_norm(x)
        qkv = self._self_qkv(x)
        cached = cache.write(number, qkv[..., self._dim :], block.places, block.last_start, block.keys)
        query, mask = qkv[..., : self._dim], block.mask
        if wanted is not None:
            residual, query = _columns(residual, wanted), _columns(query, wanted)
            mask = None if mask is None else _columns(mask, wanted)
        x = self._self_out(self._attended(query, cached, mask, block.ragged)).add_(residual)
        if not self._norm_first:
            x = self._self_norm(x)

        residual = x
        if self._norm_first:
            x = self._cross_norm(x)
        x = self._cross_out(self._attended(self._cross_q(x), cross, cross_mask, block.ragged)).add_(residual)
        if not self._norm_first:
            x = self._cross_norm(x)

        residual = x
        if self._norm_first:
            x = self._final_norm(x)
        x = self._fc2(self._fc1(x)).add_(residual)
        return x if self._norm_first else self._final_norm(x)

    def _attended(self, query: Tensor, cached: Tensor, mask: Tensor | None, ragged: Ragged | None) -> Tensor:
        """What queries (B x W x D or N x D) find in keys and values (B x H x L x 2D/H), in the shape of the queries."""
        if ragged is not None:
            query = ragged.spread(query)
        keys, values = cached.chunk(2, dim=-1)
        found = self._attend(split_heads(query, self._heads), keys, values, mask)
        return found if ragged is None else ragged.pack(found)


def head_by_head(attention: Any) -> Tensor:
    """The order in which outputs of key and value projection, one behind the other, stand head by head, keys first."""
    outputs = torch.arange(2 * attention.embed_dim)
    return outputs.view(2, attention.num_heads, -1).transpose(0, 1).flatten()


def _columns(x: Tensor, wanted: Tensor) -> Tensor:
    """Of W columns, x being B x ... x W x N, those wanted, B x k."""
    index = wanted.view(wanted.size(0), *[1] * (x.dim() - 3), -1, 1)
    return x.gather(-2, index.expand(*x.shape[:-2], -1, x.size(-1)))
