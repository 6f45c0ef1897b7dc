"""Whether a model has changed since an engine copied its weights."""

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.choose_backend import is_asynchronous, on_its_way

_LINE = 64
"""bytes that are compared at one place of a weight, as many as a line of a CPU's cache"""


class WeightsSnapshot:
    """A snapshot of a module's parts and weights, which tells when an engine built from them is stale."""

    def __init__(self, module: nn.Module) -> None:
        self._holders: list[dict[str, Any]] = [
            held for part in module.modules() for held in (part._modules, part._parameters)
        ]
        self._things = self._all_things()
        self._weights = [thing for thing in self._things if isinstance(thing, Tensor)]
        # PyTorch counts no versions of weights created in inference mode
        self._is_counted = not any(weight.is_inference() for weight in self._weights)
        plain = [one for one in self._weights if type(one) in (nn.Parameter, Tensor) and one.numel() > 0]
        self._waits = bool(plain) and is_asynchronous(plain[0].device)
        places = 2 if self._waits else 3  # of a GPU its host asks for one after the other
        on_one_device = [weight for weight in plain if weight.device == plain[0].device]
        self._lines = list(chain.from_iterable(_lines_of(weight)[:places] for weight in on_one_device))
        # of numpy's ways this one leaves the weights' storage resizable
        self._buffers = [] if self._waits else [np.from_dlpack(line).data for line in self._lines]
        self._bytes = self._looked_at()()
        self._seen = self._now()
        self._arriving: Callable[[], bytes] | None = None  # the bytes, until they have been compared

    def are_current(self) -> bool:
        """Whether the module has the same parts and weights, neither moved nor written to since."""
        return self.may_be_current() and self.were_current()

    def may_be_current(self) -> bool:
        """False where the weights have changed. If it is True on a GPU, `were_current` must be asked later, too.

        PyTorch does not count writes by fused optimizers or through `weight.data`, as fairseq's optimizers write. So a
        few bytes of every weight are compared, too: of plain ones, on the first one's device. From a GPU they arrive
        while the host goes on.
        """
        things = self._all_things()
        is_whole = len(things) == len(self._things) and all(map(operator.is_, things, self._things))
        if not (is_whole and self._now() == self._seen):
            return False
        self._arriving = self._looked_at()
        return self._waits or self.were_current()

    def were_current(self) -> bool:
        """Whether the weights were current when `may_be_current` said so; the host waits for bytes on their way."""
        arriving, self._arriving = self._arriving, None
        return arriving is None or arriving() == self._bytes

    def _looked_at(self) -> Callable[[], bytes]:
        """The present bytes of all lines; the function waits for them."""
        if not self._waits:
            return lambda: b"".join(self._buffers)  # ten times as fast as `torch.cat`
        arriving = on_its_way(torch.cat(self._lines))
        return lambda: arriving().numpy().tobytes()

    def _all_things(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self._holders)))

    def _now(self) -> list[Any]:
        # a weight that is moved or converted has another address, too
        kind = [(weight.dtype, weight.device) for weight in self._weights[:1]]
        versions = map(operator.attrgetter("_version"), self._weights) if self._is_counted else ()
        return [*kind, *map(Tensor.data_ptr, self._weights), *versions]


def _lines_of(weight: Tensor) -> Sequence[Tensor]:
    """Three lines of a weight's bytes, 3 x `_LINE`, or all its bytes, 1 x N; they share its memory.

    In half precision a small step leaves most numbers as they were, so there are several in a line. The first line is
    the beginning of row 2: of embeddings of words EOS, which every sentence has, and of learned positions the first.
    """
    last = sum((size - 1) * stride for size, stride in zip(weight.shape, weight.stride(), strict=True))
    memory = weight.detach().as_strided((last + 1,), (1,)).view(torch.uint8)
    first = 2 * weight.stride(0) * weight.element_size() if weight.dim() > 1 else 0
    apart = (memory.numel() - first - _LINE) // 2
    return list(memory[first:].unfold(0, _LINE, apart)) if apart >= _LINE else [memory]
