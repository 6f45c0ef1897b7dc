"""Linear layers by the kernels."""

import ctypes
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import gelu
from torch import Tensor

from fairseq_aggdec.engine.native.library import ADDRESS, I64, Kernels, address, check, threads

ACTIVATIONS: dict[Any, int] = {None: 0, F.relu: 1, torch.relu: 1, gelu: 2, F.silu: 3}  # numbers in kernels.c
WEIGHT_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # numbers in kernels.c
_WEIGHTS_IN_CACHE = 8_000_000
"""number of weights above which a model is read from memory for every pass"""
_LEVELS, _ZERO = 127, 128  # as in kernels.c


class CProduct(ctypes.Structure):
    """`Product` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, ADDRESS) for name in ("weight", "bias", "scales", "offsets")),
        *((name, I64) for name in ("inputs", "outputs", "kept")),
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

        `together`: number of weights of the whole model, if the product is a part of one.
        """
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        (outputs, inputs), panel = weight.shape, found.panel
        if bias is not None and bias.shape != (outputs,):
            raise ValueError(f"{tuple(bias.shape)} biases of {outputs} outputs")
        panels = -(-outputs // panel)
        more = panels * panel - outputs
        scales = offsets = None
        if quantised:
            peaks = weight.abs().amax(dim=1)
            scales = F.pad(peaks / _LEVELS / _LEVELS, (0, more))
            rounded = (weight * (_LEVELS / peaks.clamp(min=torch.finfo(torch.float32).tiny))[:, None]).round_()
            rounded = F.pad(rounded.to(torch.int8), (0, -inputs % 4, 0, more))
            offsets = rounded.sum(dim=1, dtype=torch.int32) * _ZERO
            packed = rounded.view(panels, panel, -1, 4).transpose(1, 2)
        else:
            if max(together, weight.numel()) > _WEIGHTS_IN_CACHE:
                weight = _narrowed(weight)
            packed = F.pad(weight, (0, 0, 0, more)).view(panels, panel, inputs).transpose(1, 2)
        biases = F.pad(torch.zeros(outputs, dtype=torch.float) if bias is None else bias, (0, more))
        self._alive = (packed.contiguous(), biases, scales, offsets)
        self._kernels, self._activation = found, ACTIVATIONS[activation]
        self.as_c = CProduct(*map(address, self._alive), inputs, outputs, WEIGHT_TYPES[weight.dtype])
        """valid as long as this object"""

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype != torch.float32 or x.size(-1) != self.as_c.inputs:
            raise RuntimeError(f"{x.dtype} of {tuple(x.shape)} for a product of {self.as_c.inputs} elements in fp32")
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], self.as_c.outputs)
        rows, count = x.numel() // self.as_c.inputs, threads()
        as_c = ctypes.addressof(self.as_c)
        check(self._kernels.product(as_c, x.data_ptr(), y.data_ptr(), rows, self._activation, count))
        return y


def _narrowed(weight: Tensor) -> Tensor:
    """The same values in 16 bits, or unchanged where 16 bits cannot represent them all."""
    for kept in (torch.float16, torch.bfloat16):
        narrow = weight.to(kept)
        if torch.equal(narrow.to(weight.dtype), weight):
            return narrow
    return weight
