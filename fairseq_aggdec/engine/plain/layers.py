"""Stock decoder layers over cached keys and values, and stock encoder layers, by PyTorch's operations."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.models.transformer import (
    TransformerDecoderBase,
    TransformerEncoderBase,
)
from torch import Tensor, nn

from fairseq_aggdec.decoding.tokens import Ragged, RowSelection
from fairseq_aggdec.engine.plain.products import Product
from fairseq_aggdec.engine.weights import queries_and_heads, width_of
from fairseq_aggdec.models import hub_t5
from fairseq_aggdec.models.transformer_parts import (
    additive_mask,
    layers_of,
    look_up,
    position_table,
)

_MIN_HEAD_DIM = 16
"""5 to 11 elements are added in another order where there are more queries (AVX-512)"""
_CAPACITY_STEP = 64
"""positions; the capacity of a cache is a multiple, so that few shapes occur"""


class Norm:
    """A layer's normalisation, without the module around it; nothing where a model has none."""

    def __init__(self, module: nn.LayerNorm | nn.RMSNorm | None) -> None:
        self._norm: Callable[[Tensor], Tensor] | None = None
        if isinstance(module, nn.RMSNorm):
            scaling = (module.normalized_shape, module.weight, module.eps)
            self._norm = lambda x: torch.rms_norm(x, *scaling)
        elif module is not None:
            weights = (module.normalized_shape, module.weight, module.bias, module.eps)
            self._norm = lambda x: torch.layer_norm(x, *weights)

    def __call__(self, x: Tensor) -> Tensor:
        return x if self._norm is None else self._norm(x)


def with_residual(
    x: Tensor,
    part: Callable[[Tensor], Tensor],
    norm: Norm,
    norm_first: bool,
) -> Tensor:
    """x + part(x), normalised before or after the part; the part's result is overwritten."""
    if norm_first:
        return part(norm(x)).add_(x)
    return norm(part(x).add_(x))


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    scale: float,
) -> Tensor:
    """Dot-product attention, B x H x W x D/H -> B x W x D; `mask`: added to products, which `scale` multiplies."""
    head_dim = query.size(-1)
    missing = _MIN_HEAD_DIM - head_dim
    if missing > 0:
        query, keys, values = (F.pad(x, (0, missing)) for x in (query, keys, values))
    found = F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=mask,
        scale=scale,
    )
    if missing > 0:
        found = found[..., :head_dim]
    return found.transpose(1, 2).flatten(2)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """B x L x D -> B x H x L x D/H."""
    return x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)


class Positions:
    """A growing `position_table` in the precision of an engine."""

    def __init__(self, module: nn.Module, like: Tensor) -> None:
        """`module`: fairseq's learned or sinusoidal embeddings; `like`: a tensor of the wanted device and precision."""
        self._module = module
        self._table = position_table(module, 1, like).detach()

    def look_up(self, positions: Tensor, end: int) -> Tensor:
        """Embeddings of positions from 0 to `end` - 1 (larger in padding), ... -> ... x D, clamped to the table."""
        return look_up(self.reaching(end), positions)

    def span(self, start: int, end: int) -> Tensor:
        """Embeddings of consecutive positions, (end - start) x D, clamped to the table."""
        table = self.reaching(end)
        if end > table.size(0):
            return look_up(table, torch.arange(start, end, device=table.device))
        return table[start:end]

    def reaching(self, end: int) -> Tensor:
        """The table, P x D, of all existing positions below `end`."""
        if end > self._table.size(0):
            self._table = position_table(self._module, end, self._table).detach()
        return self._table


class DistanceTables:
    """What is added to a stack's scores of self-attention, by head and distance, in tables of a few sizes."""

    def __init__(self, module: hub_t5.DistanceBias) -> None:
        self._module = module
        # none is ever freed: a graph reads its own where it is
        self._tables: dict[int, Tensor] = {}

    def reaching(self, length: int) -> Tensor:
        """For a key's distance from its query, from 1 - N up, N >= `length`: H x (2N - 1)."""
        size = max(_CAPACITY_STEP, 1 << (length - 1).bit_length())
        if size not in self._tables:
            device = self._module.table.weight.device
            distances = torch.arange(1 - size, size, device=device)
            self._tables[size] = self._module.of(distances).detach().contiguous()
        return self._tables[size]

    def of(self, distances: Tensor) -> Tensor:
        """Of distances, B x W x L: B x H x W x L. Keys are L positions or slots, and so no distance is L or more."""
        table = self.reaching(distances.size(-1))
        places = distances + table.size(1) // 2
        # a query in padding may be far behind its keys
        return table[:, places.clamp_(min=0)].transpose(0, 1)


class KVCache:
    """Keys and values of every decoder layer.

    Rolling a row back costs nothing: the next block is written at the row's new position, and the attention mask hides
    later entries. Every batch allocates new memory: otherwise a sentence that overflows would leave NaN to the next
    batch, and long outputs would be reserved for the rows of the largest batch. The entries of a head of a row are
    contiguous, so the products of attention need no copies.
    """

    def __init__(self, num_layers: int, heads: int, head_dim: int) -> None:
        self._none = torch.empty(num_layers, 0, heads, 0, 2 * head_dim)
        self.memory = self._none
        """layers x B x H x capacity x 2D/H, keys first; rows after the batch's and entries after a row's are stale"""
        self._batch_size = 0

    def start(self, batch_size: int, like: Tensor) -> None:
        """Prepare for a new batch of `batch_size` rows with the device and dtype of `like`."""
        # frees the last batch's memory before more is allocated
        self.memory = self._none
        self.memory = self._allocated(batch_size, _CAPACITY_STEP, like)
        self._batch_size = batch_size

    def reserve(self, length: int) -> None:
        """Make room for `length` positions."""
        held = self.memory.size(3)
        if length > held:
            needed = math.ceil(length / _CAPACITY_STEP) * _CAPACITY_STEP
            wider = self._allocated(
                self._batch_size, max(needed, 2 * held), self.memory
            )
            wider[:, :, :, :held] = self.memory[:, : self._batch_size]
            self.memory = wider

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""
        keep_rows(self.memory, order, dim=1)
        self._batch_size = len(order.rows)

    def _allocated(self, rows: int, capacity: int, like: Tensor) -> Tensor:
        layers, _, heads, _, size = self.memory.shape
        # zeros, not empty: hidden entries have weight zero, and zero times NaN is NaN
        return like.new_zeros(layers, rows, heads, capacity, size)


def keep_rows(x: Tensor, order: RowSelection, dim: int = 0) -> Tensor:
    """`x[order]` as a view of the beginning of `x`; only rows that move are copied."""
    if order.moves[0]:
        places, rows = order.moved
        x.index_copy_(dim, places, x.index_select(dim, rows))
    return x.narrow(dim, 0, len(order.rows))


class LayerMemory(NamedTuple):
    """A layer's cached keys and values while a block is read, and where those of the block are written."""

    entries: Tensor
    """B x H x L x 2D/H, keys first: what the block attends to"""
    rows: Tensor
    """the row of each token, B x 1 or N"""
    slots: Tensor
    """the place of each token among the entries, B x W or N"""

    def add(self, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the block's keys and values, B x W x 2D or N x 2D, as `queries_and_heads` orders them.

        Returns all keys and all values, B x H x L x D/H.
        """
        heads = self.entries.size(1)
        self.entries[self.rows, :, self.slots] = keys_values.view(
            *self.slots.shape, heads, -1
        )
        keys, values = self.entries.chunk(2, dim=-1)
        return keys, values


class Layer:
    """The forward pass of an encoder's or a decoder's layer without dropout, with fused attention projections."""

    def __init__(self, layer: Any, linear: Callable[..., Product]) -> None:
        """`layer`: fairseq's; `linear`: `PlainBackend.fused`."""
        attention = layer.self_attn
        width = width_of(attention)
        self._heads = attention.num_heads
        self._scale = attention.scaling
        self._sizes = (width, 2 * width)
        """of the fused projection: queries; keys and values"""
        self._norm_first = layer.normalize_before
        self._self_qkv = linear(
            attention.q_proj,
            attention.k_proj,
            attention.v_proj,
            order=queries_and_heads(attention),
        )
        self._self_out = linear(attention.out_proj)
        self._self_norm = Norm(layer.self_attn_layer_norm)
        cross = getattr(layer, "encoder_attn", None)
        if cross is not None:
            self._cross_q = linear(cross.q_proj)
            self._cross_out = linear(cross.out_proj)
            self._cross_norm = Norm(layer.encoder_attn_layer_norm)
        self._fc1 = linear(layer.fc1, activation=layer.activation_fn)
        gate = getattr(layer, "gate", None)
        self._gate = None if gate is None else linear(gate)
        self._fc2 = linear(layer.fc2)
        self._final_norm = Norm(layer.final_layer_norm)

    def __call__(
        self,
        x: Tensor,
        memory: LayerMemory | None,
        mask: Tensor | None,
        cross: tuple[Tensor, Tensor] | None = None,
        cross_mask: Tensor | None = None,
        ragged: Ragged | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """The layer's output.

        Args:
            x: B x W x D; ragged, N x D.
            memory: the layer's cached keys and values; those of the block are added; None: x attends to itself alone.
            mask: added to the scores of keys, B or 1 x H or 1 x W or 1 x L.
            cross: the source's keys and values, B x H x S x D/H; None in an encoder.
            cross_mask: additive, B x 1 x 1 x S.
            ragged: the valid entries of the block; None: all B x W.
            wanted: the columns to return, B x k; None: all; not for a ragged block.
        """
        # self-attention; keys and values are needed of all columns, what follows of the wanted ones
        residual = x
        if self._norm_first:
            x = self._self_norm(x)
        query, keys_values = self._self_qkv(x).split_with_sizes(self._sizes, -1)
        if memory is not None:
            keys, values = memory.add(keys_values)
        else:
            keys, values = split_heads(keys_values, self._heads).chunk(2, dim=-1)
        if wanted is not None and mask is not None:
            residual, query, mask = (
                _columns(part, wanted) for part in (residual, query, mask)
            )
        x = self._self_out(self._attended(query, keys, values, mask, ragged))
        x = x.add_(residual)
        if not self._norm_first:
            x = self._self_norm(x)

        # attention to the source
        if cross is not None:

            def cross_attention(x: Tensor) -> Tensor:
                return self._cross_out(
                    self._attended(self._cross_q(x), *cross, cross_mask, ragged)
                )

            x = with_residual(x, cross_attention, self._cross_norm, self._norm_first)

        # the feed-forward part
        return with_residual(
            x,
            self._feed_forward,
            self._final_norm,
            self._norm_first,
        )

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self._fc1(x)
        if self._gate is not None:
            inner = inner.mul_(self._gate(x))
        return self._fc2(inner)

    def _attended(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        ragged: Ragged | None,
    ) -> Tensor:
        """Attention of queries, B x W x D or N x D, to keys and values, B x H x L x D/H; the shape of the queries."""
        if ragged is not None:
            query = ragged.spread(query)
        found = attend(split_heads(query, self._heads), keys, values, mask, self._scale)
        return found if ragged is None else ragged.pack(found)


class DecoderLayers:
    """A decoder's layers and its last norm, by PyTorch's operations; `native.layers.DecoderStack` is the same in C."""

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        linear: Callable[..., Product],
    ) -> None:
        """`linear`: `PlainBackend.fused`."""
        self._layers = [Layer(layer, linear) for layer in layers_of(decoder)]
        self._final_norm = Norm(decoder.layer_norm)
        self._bias = distance_bias(decoder)
        # the source's keys and values by layer, B x H x S x D/H
        self._cross: list[tuple[Tensor, Tensor]] = []
        self._cross_mask: Tensor | None = None  # B x 1 x 1 x S, additive

    def attend_to(self, cross: Tensor, padding: Tensor | None) -> None:
        """Set the sources: keys and values, layers x B x H x S x 2D/H, and hidden positions, B x S; None: no such."""
        keys, values = cross.chunk(2, dim=-1)
        self._cross = list(zip(keys, values, strict=True))
        self._cross_mask = _padding_mask(padding, cross)

    def block(
        self,
        x: Tensor,
        cache: KVCache,
        positions: Tensor,
        end: int,
        *,
        ragged: Ragged | None = None,
        reach: Tensor | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """Run the layers on a block; the result is B x W x D, or B x k x D; ragged, N x D.

        Args:
            x: B x W x D; ragged, N x D.
            cache: with room for the block, which is added.
            positions: B x W, of the tokens, all below `end`; or B x 1, those of each row's first token.
            end: upper bound of the positions, exclusive.
            ragged: the valid entries of the block; None: all.
            reach: B x W, the last position that each token attends to; None: its own.
            wanted: B x k, the columns to return; None: all; not for a ragged block.
        """
        width = x.size(1) if ragged is None else ragged.width
        if positions.size(1) < width:
            positions = positions + torch.arange(width, device=x.device)
        mask = _hide_after(positions if reach is None else reach, end, x)
        if self._bias is not None:
            keys = torch.arange(end, device=x.device)
            mask = mask + self._bias.of(keys - positions[..., None])
        if ragged is not None:
            positions = ragged.pack(positions)
        return self._run(x, cache, positions, mask, ragged, wanted)

    def tree(
        self,
        x: Tensor,
        cache: KVCache,
        positions: Tensor,
        paths: Tensor,
        end: int,
        ragged: Ragged | None = None,
    ) -> Tensor:
        """Run the layers on tokens of trees, each after its prefix; the result has the shape of x.

        `positions`: B x W or, ragged, N; `paths`: B x W x L or N x L, see `TreeBlock`, of slots below `end`. Others are
        those of `block`.
        """
        slots = paths.gather(-1, positions[..., None]).squeeze(-1)
        everything = torch.ones(*slots.shape, end, dtype=torch.bool, device=x.device)
        mask = additive_mask(everything.scatter(-1, paths, False), x)
        if ragged is not None:
            mask = ragged.spread(mask)
        mask = mask[:, None]
        if self._bias is not None:
            # the distance of each slot's token; of its own slot, which is at all places of the path from its own on, 0
            places = torch.arange(paths.size(-1), device=x.device)
            apart = (places - positions[..., None]).clamp_(max=0)
            apart = paths.new_zeros(everything.shape).scatter(-1, paths, apart)
            if ragged is not None:
                apart = ragged.spread(apart)
            mask = mask + self._bias.of(apart)
        return self._run(x, cache, slots, mask, ragged)

    def _run(
        self,
        x: Tensor,
        cache: KVCache,
        slots: Tensor,
        mask: Tensor,
        ragged: Ragged | None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """`slots`: B x W or N, where the tokens are written; `mask`: B x H or 1 x W x L, of the first L entries."""
        batch_size, _, _, end = mask.shape
        rows = torch.arange(batch_size, device=x.device)[:, None]
        if ragged is not None:
            rows = ragged.rows
        entries = cache.memory[:, :batch_size, :, :end]
        last = self._layers[-1]
        for layer, keys_and_values, cross in zip(
            self._layers, entries, self._cross, strict=True
        ):
            memory = LayerMemory(keys_and_values, rows, slots)
            x = layer(
                x,
                memory,
                mask,
                cross,
                self._cross_mask,
                ragged,
                wanted if layer is last else None,
            )
        return self._final_norm(x)


class EncoderLayers:
    """An encoder's layers and its last norm, by PyTorch's operations; as `native.layers.EncoderStack` in C."""

    def __init__(
        self,
        encoder: TransformerEncoderBase,
        linear: Callable[..., Product],
    ) -> None:
        """`linear`: `PlainBackend.fused`."""
        self._layers = [Layer(layer, linear) for layer in layers_of(encoder)]
        self._final_norm = Norm(encoder.layer_norm)
        self._bias = distance_bias(encoder)

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Run the layers, B x S x C -> B x S x C; `padding`: booleans, B x S, the hidden positions."""
        mask = _padding_mask(padding, x)
        if self._bias is not None:
            places = torch.arange(x.size(1), device=x.device)
            bias = self._bias.of((places - places[:, None])[None])
            mask = bias if mask is None else mask + bias
        for layer in self._layers:
            x = layer(x, None, mask)
        return self._final_norm(x)


def distance_bias(stack: Any) -> DistanceTables | None:
    """What an encoder or a decoder adds by distance; None: nothing."""
    module = getattr(stack, "distance_bias", None)
    return None if module is None else DistanceTables(module)


def _hide_after(last: Tensor, end: int, like: Tensor) -> Tensor:
    """Additive mask, B x 1 x W x `end`, that hides the positions after each query's `last` position, B x W."""
    return additive_mask(torch.arange(end, device=like.device) > last[..., None], like)[
        :, None
    ]


def _padding_mask(padding: Tensor | None, like: Tensor) -> Tensor | None:
    """Additive mask, B x 1 x 1 x S, of hidden positions, B x S."""
    return None if padding is None else additive_mask(padding, like)[:, None, None]


def _columns(x: Tensor, wanted: Tensor) -> Tensor:
    """The wanted columns, B x k, of x: B x ... x W x N -> B x ... x k x N."""
    index = wanted.view(wanted.size(0), *[1] * (x.dim() - 3), -1, 1)
    return x.gather(-2, index.expand(*x.shape[:-2], -1, x.size(-1)))
