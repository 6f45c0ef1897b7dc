"""Fusing a model's weights for the engine's products."""

from typing import Any

import torch
from torch import Tensor, nn


def fused_weights(*projections: nn.Linear, order: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Concatenate the weights, O x I, and biases, O, of projections of the same input; a single one is not copied.

    `projections`: concatenated in this order; a missing bias is zero. `order`: O, a permutation of the outputs.
    """
    weights = [projection.weight.detach() for projection in projections]
    biases = [None if projection.bias is None else projection.bias.detach() for projection in projections]
    if len(projections) == 1 and order is None:
        return weights[0], biases[0]
    weight, bias = torch.cat(weights), None
    if any(part is not None for part in biases):
        zeros = [own.new_zeros(own.size(0)) for own in weights]
        bias = torch.cat([zero if part is None else part for part, zero in zip(biases, zeros, strict=True)])
    if order is not None:
        order = order.to(weight.device)
        weight, bias = weight[order], None if bias is None else bias[order]
    return weight, bias


def head_by_head(attention: Any) -> Tensor:
    """The permutation of concatenated keys and values, 2D, that groups them by head, each head's keys first."""
    outputs = torch.arange(2 * attention.embed_dim)
    return outputs.view(2, attention.num_heads, -1).transpose(0, 1).flatten()
