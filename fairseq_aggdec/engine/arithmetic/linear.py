"""Linear layers as the engine runs them: projections of one input fused, weights prepacked where that is faster.

oneDNN makes machine code for every number of rows that it meets, about a millisecond for every shape of layer: so
numbers of rows are rounded up to a few.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic.fixed_shapes import ROWS_OF_AMX, exact_rows, has_amx
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic, Prepacked, product_with
from fairseq_aggdec.engine.arithmetic.weights import fused_weights
from fairseq_aggdec.engine.native.modules import PackedProduct, kernels_for

Activation = Callable[[Tensor], Tensor]

_WORTH_PREPACKING = 400_000  # multiplications; below, oneDNN's fixed cost of a call is more than it saves
_STEP = 16  # rows; of many, those that are added take longer than new machine code now and then
_WIDE = 512  # inputs and outputs; models of such layers read their weights from memory, and half as many are enough


class Linear:
    """x W^T + b, then an activation where one is given. For inference: no gradients."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Activation | None = None,
        arithmetic: Arithmetic = AS_THE_MODEL,
    ) -> None:
        """
        Args:
            weight: O x I.
            bias: O.
            activation: applied to the result.
            arithmetic: of the product.
        """
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        is_relu = activation in (F.relu, torch.relu)
        self._product = product_with(weight, bias, is_relu, arithmetic.precision)
        self._behind = None if is_relu else activation
        self._gain = weight.size(0) * (2 if min(weight.shape) >= _WIDE else 1)  # for each input
        self._fixed_rows = arithmetic.fixed_shapes
        in_bf16 = arithmetic.precision == "bf16" or weight.dtype == torch.bfloat16
        by_amx = in_bf16 and isinstance(self._product, Prepacked) and has_amx()
        self._most_rows = ROWS_OF_AMX if self._fixed_rows and by_amx else None
        self._always = self._product is not None and arithmetic.fixed_shapes  # `F.linear` has other results
        self._plain = None if self._always else (weight, bias, activation)

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        is_prepacked = self._product is not None and (self._always or x.numel() * self._gain >= _WORTH_PREPACKING)
        rows = computed = x.numel() // x.size(-1)
        if is_prepacked:
            computed = rounded_rows(rows)
        if self._fixed_rows:
            computed = exact_rows(computed)
        if computed == rows:
            return self._computed(x, is_prepacked)
        padded = x.new_empty(computed, x.size(-1))
        padded[:rows] = x.reshape(rows, -1)
        padded[rows:] = 0.0
        return self._computed(padded, is_prepacked)[:rows].view(*x.shape[:-1], -1)

    def _computed(self, x: Tensor, is_prepacked: bool) -> Tensor:
        if is_prepacked:
            assert self._product is not None
            if self._most_rows is None or x.numel() <= self._most_rows * x.size(-1):
                y = self._product(x)
            else:
                parts = x.flatten(0, -2).split(self._most_rows)
                y = torch.cat([self._product(part) for part in parts]).view(*x.shape[:-1], -1)
            activation = self._behind
        else:
            assert self._plain is not None
            weight, bias, activation = self._plain
            y = F.linear(x, weight, bias)
        return y if activation is None else activation(y)


def rounded_rows(rows: int) -> int:
    """The number of rows to compute where `rows` are wanted: four numbers an octave, and from 64 on multiples of 16."""
    step = min(1 << max(0, (rows - 1).bit_length() - 3), _STEP)
    return -(-rows // step) * step


def linear(
    weight: Tensor,
    bias: Tensor | None,
    activation: Activation | None = None,
    arithmetic: Arithmetic = AS_THE_MODEL,
) -> "Linear | PackedProduct":
    """A linear layer as it is fastest here, see `Linear`: by this plugin's kernels where there are any for it.

    Raises:
        AggdecError: see `kernels_for`.
    """
    found = kernels_for(weight, arithmetic, activation)
    if found is None:
        return Linear(weight, bias, activation, arithmetic)
    return PackedProduct(found, weight, bias, activation, quantised=arithmetic.precision == "int8")


def fused(
    *projections: nn.Linear,
    activation: Activation | None = None,
    arithmetic: Arithmetic = AS_THE_MODEL,
    order: Tensor | None = None,
) -> "Linear | PackedProduct":
    """One product for several projections of the same input, see `fused_weights` and `linear`."""
    return linear(*fused_weights(*projections, order=order), activation, arithmetic)
