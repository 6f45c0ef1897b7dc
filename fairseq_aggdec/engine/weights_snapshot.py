"""Whether a model has changed since an engine copied its weights."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.choose_backend import on_its_way, runs_async, weight_of

_SAMPLE = 64
"""bytes that are compared at one place of a weight, as many as a line of a CPU's cache"""


class WeightsSnapshot:
    """A snapshot of a module's parts and weights, which tells when an engine built from them is stale.

    PyTorch does not count writes by fused optimizers or through `weight.data`, as fairseq's optimizers write. So a few
    bytes of every weight are compared, too: of plain ones, on the first one's device.
    """

    def __init__(self, module: nn.Module) -> None:
        self._registries: list[dict[str, Any]] = []
        for part in module.modules():
            self._registries.append(part._modules)
            self._registries.append(part._parameters)
        # the members are held, so that Python gives their ids to no others
        self._members = list(self._present_members())
        self._weights = [
            member for member in self._members if isinstance(member, Tensor)
        ]
        # PyTorch counts no versions of weights created in inference mode
        self._are_counted = not any(weight.is_inference() for weight in self._weights)
        self._state = self._present_state()

        # where bytes are compared: of a GPU its host asks for one place after the other, so there are fewer
        device = weight_of(module).device
        self._runs_async = runs_async(device)
        places = 2 if self._runs_async else 3
        self._samples: list[Tensor] = []
        for weight in self._weights:
            is_plain = type(weight) in (nn.Parameter, Tensor)
            has_bytes = weight.numel() > 0
            if is_plain and has_bytes and weight.device == device:
                lines = _samples_of(weight)
                self._samples += lines[:places]
        self._buffers = []
        if not self._runs_async:
            # of numpy's ways this one leaves the weights' storage resizable
            self._buffers = [np.from_dlpack(sample).data for sample in self._samples]
        self._bytes = self._read_samples()()
        self._arriving: Callable[[], bytes] | None = None

    def begin_check(self) -> bool:
        """False where the weights have changed; a GPU may say so only to `finish_check`, once their bytes are there."""
        if self._present_state() != self._state:
            return False
        self._arriving = self._read_samples()
        return self._runs_async or self.finish_check()

    def finish_check(self) -> bool:
        """Whether the weights were current at `begin_check`; the host waits for bytes on their way."""
        arriving = self._arriving
        self._arriving = None
        if arriving is None:
            return True
        return arriving() == self._bytes

    def _read_samples(self) -> Callable[[], bytes]:
        """The present bytes of all samples; the function waits for them."""
        if self._runs_async and self._samples:
            arriving = on_its_way(torch.cat(self._samples))
            return lambda: arriving().numpy().tobytes()
        return lambda: b"".join(self._buffers)  # ten times as fast as `torch.cat`

    def _present_members(self) -> chain[Any]:
        """The parts and weights; None where one is missing."""
        members = map(dict.values, self._registries)
        return chain.from_iterable(members)

    def _present_state(self) -> list[Any]:
        """What changes where a part is replaced, or a weight is replaced, moved, converted or written to."""
        # the samples keep the old memory, so that a weight that is moved or converted has another address
        state = list(map(id, self._present_members()))
        state += map(Tensor.data_ptr, self._weights)
        if self._are_counted:
            state += [weight._version for weight in self._weights]
        return state


def _samples_of(weight: Tensor) -> list[Tensor]:
    """Three lines of a weight's bytes, 3 x `_SAMPLE`, or all its bytes, 1 x N; they share its memory.

    In half precision a small step leaves most values as they were, so there are several in a line. The first line is
    the beginning of row 2: of embeddings of words EOS, which every sentence has, and of learned positions the first.
    """
    elements = 1
    for size, stride in zip(weight.shape, weight.stride(), strict=True):
        elements += (size - 1) * stride
    flat = weight.detach().as_strided((elements,), (1,))
    memory = flat.view(torch.uint8)
    first = 0
    if weight.dim() > 1:
        first = 2 * weight.stride(0) * weight.element_size()
    last = memory.numel() - _SAMPLE
    apart = (last - first) // 2
    if apart < _SAMPLE:
        return [memory]
    return list(memory[first:].unfold(0, _SAMPLE, apart))
