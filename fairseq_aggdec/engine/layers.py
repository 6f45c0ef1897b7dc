"""Parts that the engine's encoder and decoder share."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fairseq_aggdec.models.position_table import look_up, position_table

_MANY_HEADS = 16  # of all rows; below, the fixed cost of two products is more than they save


class Norm:
    """A layer's own normalisation, without the module around it."""

    def __init__(self, module: nn.LayerNorm) -> None:
        self.weight, self.bias, self.eps = module.weight, module.bias, module.eps

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Scaled dot-product attention, B x H x W x D/H -> B x W x D."""
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask).transpose(1, 2).flatten(2)


def attend_in_products(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """`attend`, as two products for all heads of all rows at once, where that is faster.

    On a CPU, PyTorch's own attention costs several microseconds for every head of every row as soon as there are two
    queries, and a small part of that for one.

    Args:
        query: B x H x W x D/H.
        keys, values: B x H x L x D/H, each head's lying together and the heads at equal distances: others are copied.
        mask: additive, broadcast to B x H x W x L.

    Returns:
        B x W x D.
    """
    batch_size, heads, width, head_dim = query.shape
    if width == 1 or batch_size * heads < _MANY_HEADS or query.is_cuda or query.dtype != torch.float32:
        return attend(query, keys, values, mask)
    length = keys.size(2)
    flat, keys = query.flatten(0, 1), keys.flatten(0, 1).transpose(1, 2)  # BH x W x D/H, BH x D/H x L
    scores = torch.bmm(flat / math.sqrt(head_dim), keys)  # BH x W x L
    if mask is not None:
        scores.view(batch_size, heads, width, length).add_(mask)  # the product is ours, the mask is the caller's
    attended = torch.bmm(scores.softmax(dim=-1), values.flatten(0, 1))
    return attended.view(query.shape).transpose(1, 2).flatten(2)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """B x L x D -> B x H x L x D/H."""
    return x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)


def split_fused(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """Fused projections of an input, B x L x (parts D) -> `parts` times B x H x L x D/H."""
    return x.view(x.size(0), x.size(1), parts, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)


class Positions:
    """`position_table` in the precision of an engine."""

    def __init__(self, module: Any, like: Tensor) -> None:
        """
        Args:
            module: fairseq's learned or sinusoidal embeddings.
            like: gives device and precision.
        """
        self._module = module
        self._table = position_table(module, 1, like).detach()

    def look_up(self, positions: Tensor, end: int) -> Tensor:
        """... -> ... x D, for positions from 0, below `end` except in padding; behind the table they are clamped."""
        return look_up(self._reaching(end), positions)

    def span(self, start: int, end: int) -> Tensor:
        """(end - start) x D, for consecutive positions, clamped as by `look_up`."""
        table = self._reaching(end)
        if end > table.size(0):
            return look_up(table, torch.arange(start, end, device=table.device))
        return table[start:end]

    def _reaching(self, end: int) -> Tensor:
        if end > self._table.size(0):
            self._table = position_table(self._module, end, self._table).detach()
        return self._table
