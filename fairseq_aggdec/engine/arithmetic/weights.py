"""How a model's weights are put together for the engine's products."""

from typing import Any

import torch
from torch import Tensor, nn


def fused_weights(*projections: nn.Linear, order: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """O x I weights and O biases of several projections of the same input; of a single one the model's own.

    Args:
        projections: their outputs stand one behind the other.
        order: numbers of all outputs as they are to stand instead.
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
    """The order in which outputs of key and value projection, one behind the other, stand head by head, keys first."""
    outputs = torch.arange(2 * attention.embed_dim)
    return outputs.view(2, attention.num_heads, -1).transpose(0, 1).flatten()
