"""GPU tensors that have a device, a shape and no numbers, on machines without a GPU.

Whatever needs a number on the host (`item`, `bool`, `nonzero`) fails, and so does what mixes devices.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda", 0)


@contextmanager
def fake_gpu() -> Iterator[None]:
    """In it, all tensors that are made are fake; those on `GPU` are as on a GPU."""
    with FakeTensorMode(), _Indexing(), torch.no_grad():
        yield


def to_fake_gpu(module: nn.Module, dtype: torch.dtype) -> None:
    """Move a module there, within `fake_gpu`: its numbers are lost."""

    def moved(tensor: Tensor) -> Tensor:
        return torch.empty(tensor.shape, dtype=dtype if tensor.is_floating_point() else tensor.dtype, device=GPU)

    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(moved(parameter), requires_grad=False)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = moved(buffer)
        weights = getattr(part, "weights", None)
        if isinstance(weights, Tensor):  # fairseq's sinusoidal positions
            part.weights = moved(weights)


class _Indexing(TorchFunctionMode):
    """`x[...]` and copies by other operations: PyTorch's own ask for a device that is not there."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if isinstance(args[0] if args else None, Tensor) and args[0].device == GPU:
            if function is Tensor.__getitem__:
                return _indexed(*args)
            if function is Tensor.__setitem__:  # of slices
                return _copied(_indexed(*args[:2]), args[2])
            if function is Tensor.copy_:
                return _copied(*args)
        return function(*args, **(kwargs or {}))


def _copied(x: Tensor, other: Tensor) -> Tensor:
    assert x.device == other.device
    assert torch.broadcast_shapes(x.shape, other.shape) == x.shape
    return x


def _indexed(x: Tensor, index: Any) -> Tensor:
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [part for part in parts if not isinstance(part, Tensor)]:
        place = next(number for number, part in enumerate(parts) if part is Ellipsis)
        used = sum(part is not None for part in parts) - 1
        parts[place : place + 1] = [slice(None)] * (x.dim() - used)
    dim, tensors = 0, []
    for part in parts:
        if part is None:
            x = x.unsqueeze(dim)
        elif isinstance(part, int):
            x = x.select(dim, part)
            dim -= 1
        elif isinstance(part, slice):
            x = torch.ops.aten.slice(x, dim, part.start, part.stop, part.step or 1)
        if not isinstance(part, int):
            tensors.append(part if isinstance(part, Tensor) else None)
        dim += 1
    return torch.ops.aten.index(x, tensors) if any(part is not None for part in tensors) else x
