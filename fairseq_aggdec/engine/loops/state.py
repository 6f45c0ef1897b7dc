"""The state of a loop: a table of parts, which lie in one buffer, so that one copy moves all of them."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

ENDED = 0
"""a sentence has ended"""
GOES = 1
"""it takes turns"""
WAITS = 2
"""it needs more room before its next turn"""


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
        parts = vars(self).items()
        return State(**{name: part[rows] for name, part in parts})

    def on_host(self) -> "State":
        """The parts as NumPy's arrays of the same memory."""
        parts = vars(self).items()
        return State(**{name: part.numpy() for name, part in parts})


def new_buffer(table: Sequence[Part]) -> Tensor:
    """Zeros for all parts, on the host."""
    entries = sum(map(_entries, table))
    return torch.zeros(entries, dtype=torch.long)


def parts_of(buffer: Tensor, table: Sequence[Part]) -> State:
    """The parts in a buffer, as tensors."""
    state = State()
    first = 0
    for part in table:
        numbers = buffer[first : first + math.prod(part.size)]
        first += _entries(part)
        setattr(state, part.name, numbers.view(part.kind).view(part.size))
    return state


def widened(state: State, table: Sequence[Part]) -> Tensor:
    """A buffer with a state of the host, with more rows, which have ended, and more positions."""
    buffer = new_buffer(table)
    larger = parts_of(buffer, table).on_host()
    rows = len(state.going)
    for name, part in vars(state).items():
        whole = getattr(larger, name)
        # a path goes on with slot 0, which is on every path
        whole[:rows, ..., : part.shape[-1]] = part
        whole[rows:] = whole[rows - 1]
    larger.going[rows:] = ENDED
    return buffer


def _entries(part: Part) -> int:
    """The length of a part in a buffer, even: kernels are compiled anew for addresses that are no multiples of 16."""
    length = math.prod(part.size)
    return length + length % 2
