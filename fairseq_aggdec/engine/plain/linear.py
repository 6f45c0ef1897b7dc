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

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic, Precision

Activation = Callable[[Tensor], Tensor]
Product = Callable[[Tensor], Tensor]
"""... x I -> ... x O, in the input's type"""

_TYPICAL_ROWS = 16  # weights are prepacked for this number of rows; any number can be multiplied
_PREPACKED_TYPES = (torch.float32, torch.bfloat16)
_MIN_MULTIPLICATIONS = 400_000  # with fewer multiplications oneDNN's fixed cost of a call is more than it saves
_ROW_STEP = 16  # largest step of rounding; more additional rows would take longer than compiling now and then
_WIDE_LAYER = 512  # inputs and outputs; such weights are read from memory, and half as many multiplications pay


class Linear:
    """activation(x W^T + b), without gradients."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Activation | None = None,
        arithmetic: Arithmetic = AS_THE_MODEL,
        prepacks: bool = True,
    ) -> None:
        """`weight`: O x I; `bias`: O; `activation`: applied to the result; `prepacks`: on a CPU."""
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        is_relu = activation in (F.relu, torch.relu)
        self._product = product_with(weight, bias, is_relu, arithmetic.precision, prepacks)
        self._behind = None if is_relu else activation
        self._gain = weight.size(0) * (2 if min(weight.shape) >= _WIDE_LAYER else 1)  # multiplications per input
        self._always = arithmetic.precision == "bf16"  # `F.linear` has the weights' own precision
        self._plain = None if self._always else (weight, bias, activation)

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        is_prepacked = self._product is not None and (self._always or x.numel() * self._gain >= _MIN_MULTIPLICATIONS)
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
            assert self._plain is not None
            weight, bias, activation = self._plain
            y = F.linear(x, weight, bias)
        return y if activation is None else activation(y)


def rounded_rows(rows: int) -> int:
    """Round a number of rows up: to one of four numbers per power of two, from 64 on to a multiple of 16."""
    step = min(1 << max(0, (rows - 1).bit_length() - 3), _ROW_STEP)
    return -(-rows // step) * step


def product_with(
    weight: Tensor, bias: Tensor | None, relu: bool, precision: Precision, prepacks: bool = True
) -> Product | None:
    """x W^T + b, O x I, then a ReLU if `relu`; None where `F.linear` is as good. `prepacks`: weights, on a CPU."""
    if precision == "bf16":
        weight, bias = weight.bfloat16(), None if bias is None else bias.bfloat16()
    if prepacks and weight.dtype in _PREPACKED_TYPES and can_prepack(weight.dtype):
        return Prepacked(weight, bias, relu)
    return Plain(weight, bias, relu) if precision == "bf16" else None


class Prepacked:
    """A product in the precision of the weights, fp32 or bf16, prepacked by oneDNN."""

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool) -> None:
        self._dtype = weight.dtype
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _TYPICAL_ROWS)
        self._bias = bias
        self._last = "relu" if relu else "none"

    def __call__(self, x: Tensor) -> Tensor:
        own = x if x.dtype == self._dtype else x.to(self._dtype)
        y = torch.ops.mkldnn._linear_pointwise(own, self._weight, self._bias, self._last, [], "")
        return y if own is x else y.to(x.dtype)


class Plain:
    """A product in the precision of the weights, where oneDNN has none."""

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool) -> None:
        self._weight, self._bias, self._relu = weight, bias, relu

    def __call__(self, x: Tensor) -> Tensor:
        y = F.linear(x.to(self._weight.dtype), self._weight, self._bias)
        return (y.relu_() if self._relu else y).to(x.dtype)


@cache
def can_prepack(dtype: torch.dtype) -> bool:
    """Whether PyTorch has oneDNN's functions for this type, with the expected behaviour."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight, x = torch.linspace(-1, 1, 96).view(12, 8).to(dtype), torch.linspace(-2, 1, 48).view(1, 6, 8).to(dtype)
    bias = torch.linspace(0, 1, 12).to(dtype)
    try:
        products = [Prepacked(weight, bias, relu)(x) for relu in (False, True)]
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = F.linear(x.float(), weight.float(), bias.float())
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    return all(
        product.shape == right.shape and torch.allclose(product.float(), right, rtol=tolerance, atol=tolerance)
        for product, right in zip(products, (expected, expected.relu()), strict=True)
    )
