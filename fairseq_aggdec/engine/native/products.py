"""Linear layers by the kernels."""

import ctypes
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import gelu
from torch import Tensor

from fairseq_aggdec.engine.native.library import (
    ADDRESS,
    I64,
    Kernels,
    address,
    check,
    fields,
    threads,
)
from fairseq_aggdec.models.hub_t5 import gelu_tanh

# numbers in kernels.c
ACTIVATIONS: dict[Any, int] = {
    None: 0,
    F.relu: 1,
    torch.relu: 1,
    gelu: 2,
    F.silu: 3,
    gelu_tanh: 4,
}
# numbers in kernels.c
WEIGHT_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_WEIGHTS_IN_CACHE = 8_000_000
"""number of weights above which a model is read from memory for every pass"""
_LEVELS = 127  # as in kernels.c
_ZERO = 128  # as in kernels.c


class CProduct(ctypes.Structure):
    """`Product` of kernels.c, where the fields are described."""

    _fields_ = (
        *fields(ADDRESS, "weight bias scales offsets"),
        *fields(I64, "inputs outputs kept"),
    )


class PackedProduct:
    """activation(x W^T + b), ... x I -> ... x O, with weights packed for the kernels.

    Weights of a checkpoint trained with --fp16 or --bf16 fit into 16 bits. They are stored so and widened when they are
    read: the same numbers, with half as much to read from memory.

    In 8-bit integers every row of weights and every row of inputs has a scale of its own; sums are not rounded.
    """

    def __init__(
        self,
        found: Kernels,
        weight: Tensor,
        bias: Tensor | None,
        activation: Any = None,
        quantised: bool = False,
        together: int = 0,
    ) -> None:
        """Copy a weight, O x I, in single precision on the CPU, and a bias, O.

        `together`: weights of the whole model, if the product is a part of one.
        """
        weight = weight.detach()
        outputs, inputs = weight.shape
        bias = weight.new_zeros(outputs) if bias is None else bias.detach()
        if bias.shape != (outputs,):
            raise ValueError(f"{tuple(bias.shape)} biases of {outputs} outputs")

        # rounding
        scales = offsets = None
        if quantised:
            peaks = weight.abs().amax(dim=1)
            steps = peaks.clamp(min=torch.finfo(torch.float32).tiny)
            weight = (weight * (_LEVELS / steps)[:, None]).round_().to(torch.int8)
            scales = peaks / _LEVELS / _LEVELS
            offsets = weight.sum(dim=1, dtype=torch.int32) * _ZERO
        elif max(together, weight.numel()) > _WEIGHTS_IN_CACHE:
            weight = _narrowed(weight)
        kept = WEIGHT_TYPES.get(weight.dtype, 0)

        # panels of outputs, each input by input; of 8-bit integers by four inputs
        group = 4 if quantised else 1
        missing = -outputs % found.panel
        padded = F.pad(weight, (0, -inputs % group, 0, missing))
        packed = (
            padded.view(-1, found.panel, padded.size(1) // group, group)
            .transpose(1, 2)
            .contiguous()
        )
        of_outputs = [
            None if x is None else F.pad(x, (0, missing))
            for x in (bias, scales, offsets)
        ]
        self._alive = (packed, *of_outputs)
        self._kernels = found
        self._activation = ACTIVATIONS[activation]
        self.as_c = CProduct(*map(address, self._alive), inputs, outputs, kept)
        """valid as long as this object"""

    def __call__(self, x: Tensor) -> Tensor:
        inputs = self.as_c.inputs
        outputs = self.as_c.outputs
        if x.dtype != torch.float32 or x.size(-1) != inputs:
            raise RuntimeError(
                f"{x.dtype} of {tuple(x.shape)} for a product of {inputs} elements in fp32"
            )
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], outputs)
        rows = x.numel() // inputs
        check(
            self._kernels.product(
                ctypes.addressof(self.as_c),
                x.data_ptr(),
                y.data_ptr(),
                rows,
                self._activation,
                threads(),
            )
        )
        return y


def _narrowed(weight: Tensor) -> Tensor:
    """The same values in 16 bits, or unchanged where 16 bits cannot represent them all."""
    for kept in (torch.float16, torch.bfloat16):
        narrow = weight.to(kept)
        if torch.equal(narrow.to(weight.dtype), weight):
            return narrow
    return weight
