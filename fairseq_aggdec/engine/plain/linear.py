"""Linear layers of the engine: projections of one input are fused, weights are prepacked where that is faster.

oneDNN compiles machine code for every number of rows and shape of layer, in about a millisecond: so numbers of rows are
rounded up to a few.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.plain.fixed_shapes import AMX_MAX_ROWS, exact_rows, has_amx
from fairseq_aggdec.engine.plain.prepacked import Prepacked, product_with

Activation = Callable[[Tensor], Tensor]

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
        self._fixed_rows = arithmetic.fixed_shapes
        in_bf16 = arithmetic.precision == "bf16" or weight.dtype == torch.bfloat16
        by_amx = in_bf16 and isinstance(self._product, Prepacked) and has_amx()
        self._most_rows = AMX_MAX_ROWS if self._fixed_rows and by_amx else None
        self._always = self._product is not None and arithmetic.fixed_shapes  # `F.linear` rounds differently
        self._plain = None if self._always else (weight, bias, activation)

    def __call__(self, x: Tensor) -> Tensor:
        """... x I -> ... x O."""
        is_prepacked = self._product is not None and (self._always or x.numel() * self._gain >= _MIN_MULTIPLICATIONS)
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
    """Round a number of rows up: to one of four numbers per power of two, from 64 on to a multiple of 16."""
    step = min(1 << max(0, (rows - 1).bit_length() - 3), _ROW_STEP)
    return -(-rows // step) * step
