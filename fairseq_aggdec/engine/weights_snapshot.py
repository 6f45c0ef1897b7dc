"""Whether a model has changed since an engine copied its weights."""

import operator
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_aggdec.engine.choose_backend import is_asynchronous, on_its_way


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
        # a norm or a bias of the last layer: an optimizer changes it in every step
        self._sample = next((weight for weight in reversed(self._weights) if weight.dim() == 1), torch.empty(0))
        self._numbers = self._sample.detach().cpu().clone()
        self._seen = self._now()
        self._arriving: Callable[[], Tensor] | None = None  # the sample, until it has been compared

    def are_current(self) -> bool:
        """Whether the module has the same parts and weights, neither moved nor written to since."""
        return self.may_be_current() and self.were_current()

    def may_be_current(self) -> bool:
        """False where the weights have changed. If it is True on a GPU, `were_current` must be asked later, too.

        PyTorch does not count writes by fused optimizers or through `weight.data`, as fairseq's optimizers write. So
        the elements of one small weight are compared, too. From a GPU they arrive while the host goes on.
        """
        things = self._all_things()
        is_whole = len(things) == len(self._things) and all(map(operator.is_, things, self._things))
        if not (is_whole and self._now() == self._seen):
            return False
        self._arriving = on_its_way(self._sample.detach())
        return is_asynchronous(self._sample.device) or self.were_current()

    def were_current(self) -> bool:
        """Whether the weights were current when `may_be_current` said so; the host waits for numbers on their way."""
        arriving, self._arriving = self._arriving, None
        return arriving is None or torch.equal(arriving(), self._numbers)

    def _all_things(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self._holders)))

    def _now(self) -> list[Any]:
        # a weight that is moved or converted has another address, too
        kind = [(weight.dtype, weight.device) for weight in self._weights[:1]]
        versions = map(operator.attrgetter("_version"), self._weights) if self._is_counted else ()
        return [*kind, *map(Tensor.data_ptr, self._weights), *versions]
