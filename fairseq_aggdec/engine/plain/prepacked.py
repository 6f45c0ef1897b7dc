"""Matrix products with prepacked weights, in the precisions that PyTorch offers.

A block has few rows, and PyTorch's matrix product on a CPU then spends most of its time on rearranging the weights for
the vector units, in every call. oneDNN, a part of PyTorch, takes weights that were rearranged once. PyTorch does not
document these functions, so they are tried out before they are used.
"""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Precision

_TYPICAL_ROWS = 16  # weights are prepacked for this number of rows; any number can be multiplied
_PREPACKED_TYPES = (torch.float32, torch.bfloat16)

Product = Callable[[Tensor], Tensor]
"""... x I -> ... x O, in the input's type."""


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
