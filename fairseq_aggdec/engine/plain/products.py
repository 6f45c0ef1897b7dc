"""Linear layers of the engine: weights are prepacked where that is faster.

A block has few rows, and PyTorch's matrix product on a CPU then spends most of its time on rearranging the weights for
the vector units, in every call. oneDNN, a part of PyTorch, takes weights that were rearranged once. PyTorch does not
document these functions, so they are tried out before they are used.
"""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

Activation = Callable[[Tensor], Tensor]
Product = Callable[[Tensor], Tensor]
"""... x I -> ... x O, in the input's type"""

# weights are prepacked for this many rows; any count can be multiplied
_TYPICAL_ROWS = 16
# with fewer multiplications oneDNN's fixed cost of a call is more than it saves
_MIN_MULTIPLICATIONS = 400_000
# largest step of rounding; more additional rows would take longer than compiling now and then
_ROW_STEP = 16
# inputs and outputs; such weights are read from memory, and half as many multiplications pay
_WIDE_LAYER = 512


class Linear:
    """activation(x W^T + b), without gradients, multiplied in the weights' precision."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Activation | None = None,
    ) -> None:
        """`weight`: O x I; `bias`: O; `activation`: applied to the result."""
        self._weight = weight.detach()
        self._bias = None if bias is None else bias.detach().to(weight.dtype)
        self._activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        narrow = x.to(self._weight.dtype)
        y = F.linear(narrow, self._weight, self._bias).to(x.dtype)
        return y if self._activation is None else self._activation(y)


class PrepackedLinear(Linear):
    """A `Linear` on a CPU in single precision, which oneDNN multiplies where the product is large.

    oneDNN compiles machine code for every count of rows and shape of layer, in about a millisecond: so counts of rows
    are rounded up to a few.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Activation | None = None,
    ) -> None:
        super().__init__(weight, bias, activation)
        self._multiplications = weight.size(0)
        """of each input; those of a wide layer count twice"""
        if min(weight.shape) >= _WIDE_LAYER:
            self._multiplications *= 2
        self._packed = prepacked(self._weight)

    def __call__(self, x: Tensor) -> Tensor:
        if x.numel() * self._multiplications < _MIN_MULTIPLICATIONS:
            return super().__call__(x)
        rows = x.numel() // x.size(-1)
        padding = rounded_rows(rows) - rows
        if padding == 0:
            y = multiply(x, self._packed, self._bias)
        else:
            flat = F.pad(x.reshape(rows, -1), (0, 0, 0, padding))
            y = multiply(flat, self._packed, self._bias)
            y = y[:rows].view(*x.shape[:-1], -1)
        return y if self._activation is None else self._activation(y)


def rounded_rows(rows: int) -> int:
    """Round a count of rows up: to one of four values per power of two, from 64 on to a multiple of 16."""
    step = min(1 << max(0, (rows - 1).bit_length() - 3), _ROW_STEP)
    return -(-rows // step) * step


def prepacked(weight: Tensor) -> Tensor:
    """A weight, O x I, as oneDNN multiplies by it."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _TYPICAL_ROWS)


def multiply(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


@cache
def can_prepack() -> bool:
    """Whether PyTorch has oneDNN's functions, with the expected behaviour."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight = torch.linspace(-1, 1, 96).view(12, 8)
    bias = torch.linspace(0, 1, 12)
    x = torch.linspace(-2, 1, 48).view(6, 8)
    try:
        product = multiply(x, prepacked(weight), bias)
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = F.linear(x, weight, bias)
    if product.shape != expected.shape:
        return False
    return torch.allclose(product, expected, rtol=1e-4, atol=1e-4)
