"""Linear layers of the engine: projections of one input are fused, weights are prepacked where that is faster.

A block has few rows, and PyTorch's matrix product on a CPU then spends most of its time on rearranging the weights for
the vector units, in every call. oneDNN, a part of PyTorch, takes weights that were rearranged once. PyTorch does not
document these functions, so they are tried out before they are used. oneDNN compiles machine code for every number of
rows and shape of layer, in about a millisecond: so numbers of rows are rounded up to a few.
"""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

Activation = Callable[[Tensor], Tensor]
Product = Callable[[Tensor], Tensor]
"""... x I -> ... x O, in the input's type"""

_TYPICAL_ROWS = 16  # weights are prepacked for this number of rows; any number can be multiplied
_MIN_MULTIPLICATIONS = 400_000  # with fewer multiplications oneDNN's fixed cost of a call is more than it saves
_ROW_STEP = 16  # largest step of rounding; more additional rows would take longer than compiling now and then
_WIDE_LAYER = 512  # inputs and outputs; such weights are read from memory, and half as many multiplications pay


class Linear:
    """activation(x W^T + b), without gradients."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None, prepacks: bool = True
    ) -> None:
        """`weight`: O x I; `bias`: O; `activation`: applied to the result; `prepacks`: on a CPU."""
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        is_relu = activation in (F.relu, torch.relu)
        prepacks = prepacks and weight.dtype == torch.float32 and can_prepack()
        self._product = Prepacked(weight, bias, is_relu) if prepacks else None
        self._behind = None if is_relu else activation
        self._gain = weight.size(0) * (2 if min(weight.shape) >= _WIDE_LAYER else 1)  # multiplications per input
        self._plain = (weight, bias, activation)

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        is_prepacked = self._product is not None and x.numel() * self._gain >= _MIN_MULTIPLICATIONS
        rows = computed = x.numel() // x.size(-1)
        if is_prepacked:
            computed = rounded_rows(rows)
        if computed == rows:
            return self._computed(x, is_prepacked)
        padded = x.new_empty(computed, x.size(-1))
        padded[:rows] = x.reshape(rows, -1)
        padded[rows:] = 0.0
        return self._computed(padded, is_prepacked)[:rows].view(*x.shape[:-1], -1)

    def _computed(self, x: Tensor, is_prepacked: bool) -> Tensor:
        if is_prepacked:
            assert self._product is not None
            y, activation = self._product(x), self._behind
        else:
            weight, bias, activation = self._plain
            y = F.linear(x, weight, bias)
        return y if activation is None else activation(y)


def rounded_rows(rows: int) -> int:
    """Round a number of rows up: to one of four numbers per power of two, from 64 on to a multiple of 16."""
    step = min(1 << max(0, (rows - 1).bit_length() - 3), _ROW_STEP)
    return -(-rows // step) * step


class Prepacked:
    """x W^T + b, then a ReLU if `relu`, in single precision, prepacked by oneDNN."""

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _TYPICAL_ROWS)
        self._bias = bias
        self._last = "relu" if relu else "none"

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, self._last, [], "")


class InBfloat16:
    """activation(x W^T + b) in bfloat16; the input and the result have the model's precision."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> None:
        self._weight = weight.detach().bfloat16()
        self._bias = None if bias is None else bias.detach().bfloat16()
        self._activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        y = F.linear(x.bfloat16(), self._weight, self._bias).to(x.dtype)
        return y if self._activation is None else self._activation(y)


@cache
def can_prepack() -> bool:
    """Whether PyTorch has oneDNN's functions, with the expected behaviour."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight, x = torch.linspace(-1, 1, 96).view(12, 8), torch.linspace(-2, 1, 48).view(1, 6, 8)
    bias = torch.linspace(0, 1, 12)
    try:
        products = [Prepacked(weight, bias, relu)(x) for relu in (False, True)]
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = F.linear(x, weight, bias)
    return all(
        product.shape == right.shape and torch.allclose(product, right, rtol=1e-4, atol=1e-4)
        for product, right in zip(products, (expected, expected.relu()), strict=True)
    )
