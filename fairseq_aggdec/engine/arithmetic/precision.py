"""Matrix products with prepacked weights, in the precisions that the engine offers.

On a CPU a block has few rows, and PyTorch's matrix product then spends most of its time on arranging the weights for
the processor's vector units, in every call anew. oneDNN, which PyTorch carries, takes weights that were arranged once.
Its functions are PyTorch's own, but not among its documented ones: they are tried out before they are used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.native.library import kernels
from fairseq_aggdec.errors import AggdecError

Precision = Literal["own", "bf16", "int8"]

_TYPICAL_ROWS = 16  # what weights are prepacked for; any number of rows can be multiplied
_LEVELS = 127  # of int8 on either side of zero
_WORTH_QUANTISING = 512  # inputs of a product; below, rounding them takes PyTorch as long as is saved
_PREPACKABLE = (torch.float32, torch.bfloat16)


@dataclass(frozen=True)
class Arithmetic:
    """How the engine computes, for all layers of all models alike."""

    precision: Precision = "own"
    """Of the matrix products with weights: the model's own, bfloat16, or 8-bit integers with a scale for every row of
    weights and for every row of inputs, found when the row is met. What stands between the products (sums, norms,
    attention) keeps the model's precision."""
    bit_exact: bool = False
    """Whether a token's result must not depend, to the last bit, on what is computed together with it: see
    `bit_exact`."""

    is_judged: bool = False
    """Whether the results are drafts that a verifier judges, so that no rounding of theirs shows in the output."""

    @property
    def fixed_shapes(self) -> bool:
        """Whether to compute in the shapes of `bit_exact`.

        A low precision always does: where numbers are rounded to few bits, a difference in the last of many becomes a
        whole step now and then, and verification would differ from one-token decoding far from ties.
        """
        return not self.is_judged and (self.bit_exact or self.precision != "own")

    @property
    def fixed_rows(self) -> bool:
        """Whether products need these shapes, too: sums of integers are the same in any order."""
        return self.fixed_shapes and self.precision != "int8"

    def for_drafts(self, dim: int, like: Tensor) -> "Arithmetic":
        """How a drafter computes whose drafts are judged: in 8-bit integers where that is faster.

        Args:
            dim: D of the drafter.
            like: a weight of the verifier, for its device and type.
        """
        is_plain = like.device.type == "cpu" and like.dtype == torch.float32 and self.precision == "own"
        found = kernels() if is_plain else None
        is_faster = is_plain and dim >= _WORTH_QUANTISING and can_quantise()
        if found is not None:
            is_faster = found.quantises
        return Arithmetic("int8" if is_faster else self.precision, is_judged=True)

    def options(self) -> str:
        """As on a command line, for messages; empty for the defaults."""
        precision = [] if self.precision == "own" else [f"--{self.precision}"]
        return " ".join([*precision, *["--bit-exact"] * self.bit_exact])


AS_THE_MODEL = Arithmetic()

Product = Callable[[Tensor], Tensor]
"""... x I -> ... x O, of the input's type."""


def product_with(weight: Tensor, bias: Tensor | None, relu: bool, precision: Precision) -> Product | None:
    """x W^T + b with the weights prepacked; None where there is nothing better than `F.linear`.

    Args:
        weight: O x I.
        bias: O.
        relu: whether negative results become zero.
        precision: of the product.

    Raises:
        AggdecError: int8 products are not to be had here.
    """
    if precision == "int8":
        if weight.device.type != "cpu":
            raise AggdecError(
                f"--int8 computes on the CPU only, not on {weight.device.type}: leave it out, or add --cpu"
            )
        if not can_quantise():
            raise AggdecError(
                f"--int8: PyTorch {torch.__version__} has no int8 products that can be used on this processor (they "
                "need oneDNN and, on x86, the VNNI instructions): leave it out"
            )
        return Quantised(weight, bias, relu)
    if precision == "bf16":
        weight, bias = weight.bfloat16(), None if bias is None else bias.bfloat16()
    if weight.device.type == "cpu" and weight.dtype in _PREPACKABLE and can_prepack(weight.dtype):
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


class Quantised:
    """A product of 8-bit integers, added up in 32 bits: without rounding, so that no order of additions matters.

    A row of inputs has a scale of its own. With one for all rows, as PyTorch's dynamic quantisation has it, a token
    would come out differently in a block than alone.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool) -> None:
        weight = weight.float()
        peaks = weight.abs().amax(dim=1)  # O
        self._scales = peaks / _LEVELS / _LEVELS  # of weights, and the constant part of those of inputs
        self._levels = torch.tensor(float(_LEVELS))
        rounded = (weight * (_LEVELS / peaks.clamp(min=torch.finfo(torch.float32).tiny))[:, None]).round_()
        self._weight = torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8), [_TYPICAL_ROWS, weight.size(1)])
        self._no_offsets = torch.zeros(weight.size(0), dtype=torch.int32)
        self._bias = None if bias is None else bias.float()
        self._relu = relu

    def __call__(self, x: Tensor) -> Tensor:
        # inputs as unsigned bytes around 128: oneDNN is slow with signed ones; multiplied and added in two steps, since
        # one step rounds once where vector units do it and twice where they do not
        peaks = x.abs().amax(dim=-1, keepdim=True).float()  # ... x 1; where it is 0, anything times 0 will do
        levels = torch.div(self._levels, peaks).mul(x).add_(128.5).to(torch.uint8)
        y = torch.ops.onednn.qlinear_pointwise(
            levels, 1.0, 128, self._weight, self._scales, self._no_offsets, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y.mul_(peaks)
        if self._bias is not None:
            y.add_(self._bias)
        return (y.relu_() if self._relu else y).to(x.dtype)


@cache
def can_prepack(dtype: torch.dtype) -> bool:
    """Whether PyTorch has oneDNN, for this type, with functions that do as they did when this was written."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight, x = torch.linspace(-1, 1, 96).view(12, 8).to(dtype), torch.linspace(-2, 1, 48).view(1, 6, 8).to(dtype)
    bias = torch.linspace(0, 1, 12).to(dtype)
    try:
        products = [Prepacked(weight, bias, relu)(x) for relu in (False, True)]
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = F.linear(x.float(), weight.float(), bias.float())
    return _agree(products, expected, 1e-4 if dtype == torch.float32 else 2e-2)


@cache
def can_quantise() -> bool:
    """As `can_prepack`, for int8; processors without instructions for it may cut off large sums, which shows here."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight = torch.cat([torch.linspace(-1, 1, 96).view(6, 16), torch.ones(6, 16)])
    x = torch.cat([torch.linspace(-2, 1, 80).view(5, 16), torch.ones(1, 16), torch.zeros(1, 16)])[None]
    bias = torch.linspace(0, 1, 12)
    try:
        products = [Quantised(weight, bias, relu)(x) for relu in (False, True)]
    except (RuntimeError, AttributeError, TypeError):
        return False
    return _agree(products, F.linear(x, weight, bias), 3e-2)


def _agree(products: list[Tensor], expected: Tensor, tolerance: float) -> bool:
    return all(
        product.shape == right.shape and torch.allclose(product.float(), right, rtol=tolerance, atol=tolerance)
        for product, right in zip(products, (expected, expected.relu()), strict=True)
    )
