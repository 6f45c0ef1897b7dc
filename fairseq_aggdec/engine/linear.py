"""Linear layers as the engine runs them: projections of one input fused, weights packed where that is faster.

On a CPU a block has few rows, and PyTorch's matrix product then spends most of its time on arranging the weights for
the processor's vector units, in every call anew. oneDNN, which PyTorch carries, takes weights arranged once.

It makes machine code for every number of rows that it meets, about a millisecond for every shape of layer: so numbers
of rows are rounded up to a few.
"""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Activation = Callable[[Tensor], Tensor]

_TYPICAL_ROWS = 16  # what weights are arranged for; any number of rows can be multiplied
_WORTH_PACKING = 400_000  # multiplications; below, oneDNN's fixed cost of a call is more than it saves


class Linear:
    """x W^T + b, then an activation where one is given. For inference: no gradients."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> None:
        """
        Args:
            weight: O x I.
            bias: O.
            activation: applied to the result.
        """
        self.weight = weight.detach()
        self.bias = None if bias is None else bias.detach()
        self.activation = activation
        self._packed = _packed(self.weight)
        is_relu = activation in (F.relu, torch.relu)
        self._fused, self._behind = ("relu", None) if is_relu else ("none", activation)

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        if self._packed is not None and x.numel() * self.weight.size(0) >= _WORTH_PACKING:
            y = self._product(x)
            return y if self._behind is None else self._behind(y)
        y = F.linear(x, self.weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def _product(self, x: Tensor) -> Tensor:
        rows = x.numel() // x.size(-1)
        computed = rounded_rows(rows)
        if computed == rows:
            return torch.ops.mkldnn._linear_pointwise(x, self._packed, self.bias, self._fused, [], "")
        padded = x.new_zeros(computed, x.size(-1))
        padded[:rows] = x.reshape(rows, -1)
        y = torch.ops.mkldnn._linear_pointwise(padded, self._packed, self.bias, self._fused, [], "")
        return y[:rows].view(*x.shape[:-1], -1)


def rounded_rows(rows: int) -> int:
    """The number of rows to compute where `rows` are wanted: at most a quarter more, four numbers an octave."""
    step = 1 << max(0, (rows - 1).bit_length() - 3)
    return -(-rows // step) * step


def pads_rows(weight: Tensor) -> bool:
    """Whether it pays to give layers with such weights a number of rows from `rounded_rows`."""
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and _can_pack()


def fused(*projections: nn.Linear, activation: Activation | None = None) -> Linear:
    """One product for several projections of the same input; a single one keeps the model's own tensor."""
    if len(projections) == 1:
        return Linear(projections[0].weight, projections[0].bias, activation)
    weights: list[Tensor] = [projection.weight for projection in projections]
    if all(projection.bias is None for projection in projections):
        return Linear(torch.cat(weights), None, activation)
    biases: list[Tensor] = [
        projection.weight.new_zeros(projection.weight.size(0)) if projection.bias is None else projection.bias
        for projection in projections
    ]
    return Linear(torch.cat(weights), torch.cat(biases), activation)


def _packed(weight: Tensor) -> Tensor | None:
    """The weights arranged for oneDNN; None where it cannot take them."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not _can_pack():
        return None
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _TYPICAL_ROWS)


@cache
def _can_pack() -> bool:
    """Whether PyTorch has oneDNN, and functions that do as they did in the version that this was written for.

    They are PyTorch's own, but not among its documented ones.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    weight, x = torch.linspace(-1, 1, 96).view(12, 8), torch.linspace(-2, 1, 48).view(1, 6, 8)
    bias = torch.linspace(0, 1, 12)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        products = [torch.ops.mkldnn._linear_pointwise(x, packed, bias, name, [], "") for name in ("none", "relu")]
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = F.linear(x, weight, bias)
    return all(
        torch.allclose(product, right, rtol=1e-4, atol=1e-5)
        for product, right in zip(products, (expected, expected.relu()), strict=True)
    )
