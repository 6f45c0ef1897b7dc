"""Which tokens of a text its correction has kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher


def aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """The opcodes of difflib that turn one list of tokens into another; what both begin and end with is kept."""
    first, shorter = 0, min(len(old), len(new))
    while first < shorter and old[first] == new[first]:
        first += 1
    last = 0
    while last < shorter - first and old[-1 - last] == new[-1 - last]:
        last += 1
    if first:
        yield "equal", 0, first, 0, first
    inner = SequenceMatcher(None, old[first : len(old) - last], new[first : len(new) - last], autojunk=False)
    for kind, i1, i2, j1, j2 in inner.get_opcodes():
        yield kind, i1 + first, i2 + first, j1 + first, j2 + first
    if last:
        yield "equal", len(old) - last, len(old), len(new) - last, len(new)
