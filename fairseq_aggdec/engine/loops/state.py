"""The state of a loop: a table of parts, which lie in one buffer, so that one copy moves all of them."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

ENDED, GOES, WAITS = 0, 1, 2
"""a sentence has ended; takes turns; needs more room before its next turn"""


class Part(NamedTuple):
    """A part of a loop's state."""

    name: str
    size: tuple[int, ...]
    """rows first"""
    kind: torch.dtype = torch.long
    """int64, or float64, which holds single precision exactly"""


class State(SimpleNamespace):
    """The parts by their names, in the order of the table: tensors on the device, or NumPy's arrays on the host."""

    def of(self, rows: Any) -> "State":
        """The same parts of some rows, or of one."""
        return State(**{name: part[rows] for name, part in vars(self).items()})

    def on_host(self) -> "State":
        """The parts as NumPy's arrays of the same memory."""
        return State(**{name: part.numpy() for name, part in vars(self).items()})


def new_buffer(table: Sequence[Part]) -> Tensor:
    """Zeros for all parts, on the host."""
    return torch.zeros(sum(map(_entries, table)), dtype=torch.long)


def parts_of(buffer: Tensor, table: Sequence[Part]) -> State:
    """The parts in a buffer, as tensors."""
    pieces = buffer.split([_entries(part) for part in table])
    state = State()
    for part, piece in zip(table, pieces, strict=True):
        numbers = piece[: math.prod(part.size)].view(part.kind)
        setattr(state, part.name, numbers.view(part.size))
    return state


def widened(state: State, table: Sequence[Part]) -> Tensor:
    """A buffer with a state of the host, with more rows, which have ended, and more positions."""
    buffer = new_buffer(table)
    larger = parts_of(buffer, table).on_host()
    rows = len(state.going)
    for name, part in vars(state).items():
        whole = getattr(larger, name)
        whole[:rows, ..., : part.shape[-1]] = part  # a path goes on with slot 0, which is on every path
        whole[rows:] = whole[rows - 1]
    larger.going[rows:] = ENDED
    return buffer


def _entries(part: Part) -> int:
    """The length of a part in a buffer, even: kernels are compiled anew for addresses that are no multiples of 16."""
    return math.prod(part.size) + 1 & ~1
