"""Fusing a model's weights for the engine's products."""

from typing import Any

import torch
from torch import Tensor, nn


def fused_weights(
    *projections: nn.Linear,
    order: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Concatenate the weights, O x I, and biases, O, of projections of the same input; a single one is not copied.

    `projections`: concatenated in this order; a missing bias is zero. `order`: O, a permutation of the outputs.
    """
    weights = [projection.weight.detach() for projection in projections]
    weight = _concatenated(weights, order)
    bias = None
    is_biased = any(projection.bias is not None for projection in projections)
    if is_biased:
        biases = [_bias(projection) for projection in projections]
        bias = _concatenated(biases, order)
    return weight, bias


def _bias(projection: nn.Linear) -> Tensor:
    if projection.bias is None:
        return projection.weight.new_zeros(projection.weight.size(0))
    return projection.bias.detach()


def _concatenated(parts: list[Tensor], order: Tensor | None) -> Tensor:
    whole = parts[0] if len(parts) == 1 else torch.cat(parts)
    if order is not None:
        whole = whole[order.to(whole.device)]
    return whole


def width_of(attention: Any) -> int:
    """The elements of all heads of an attention together; in T5 they may be more or fewer than the model's."""
    return attention.num_heads * attention.head_dim


def head_by_head(attention: Any) -> Tensor:
    """The permutation of concatenated keys and values that groups them by head, each head's keys first."""
    outputs = torch.arange(2 * width_of(attention))
    of_heads = outputs.view(2, attention.num_heads, -1)
    return of_heads.transpose(0, 1).flatten()


def queries_and_heads(attention: Any) -> Tensor:
    """The permutation of concatenated queries, keys and values: queries first, the others `head_by_head`."""
    queries = torch.arange(width_of(attention))
    others = len(queries) + head_by_head(attention)
    return torch.cat([queries, others])
