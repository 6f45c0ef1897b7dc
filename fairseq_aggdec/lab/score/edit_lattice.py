"""All minimal ways to turn one token sequence into another, as a lattice (Dahlmeier and Ng 2012, section 4.1).

A vertex (i, j) means that the first i source tokens have become the first j output tokens. A step changes, inserts,
deletes or keeps one token. The lattice has the steps of all shortest paths of two Levenshtein distances: one in which a
substitution costs 1 and one in which it costs 2, as in version 3.2 of the official scorer. An arc joins several steps
to one edit of a phrase; at most `max_unchanged` of its tokens may be unchanged.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, int]


class Arc(NamedTuple):
    """An edge from one vertex to a later one."""

    origin: int
    """number of the first vertex"""
    target: int
    """number of the last vertex"""
    start: int
    """first source token that is replaced"""
    end: int
    """position after the last source token that is replaced"""
    correction: str
    """the output tokens that replace them, joined by spaces"""
    steps: int
    """number of insertions, deletions, substitutions and unchanged tokens"""
    changes: bool
    """whether any step is not an unchanged token"""
    times: int
    """how often the official scorer lists the arc, since it adds the weight of an edit that often: twice for a step
    that belongs to both distances; for a longer arc, once more each time a shorter way to it is found"""


Lattice = list[list[Arc]]
"""the arcs that end in each vertex; arcs lead from lower to higher vertex numbers, and the last vertex is (n, m)"""


def edit_lattice(
    source: Sequence[str], output: Sequence[str], max_unchanged: int = 2
) -> Lattice:
    """The lattice of n and m tokens; an arc of several steps has at most `max_unchanged` unchanged tokens."""
    steps_into = _union(source, output)
    cells = sorted(steps_into)
    numbers = {cell: number for number, cell in enumerate(cells)}
    spans: list[dict[int, Span]] = []  # into each vertex, by origin
    for cell in cells:
        steps = [
            (
                numbers[origin],
                _is_unchanged(origin, cell, source, output),
                steps_into[cell][origin],
            )
            for origin in sorted(steps_into[cell])
        ]
        into = {
            origin: (1, int(unchanged), times) for origin, unchanged, times in steps
        }
        # A longer arc is an arc that is known by now, followed by one step. As in the official scorer, of several ways
        # the first with the fewest steps counts, even if another one has fewer unchanged tokens.
        for middle, unchanged, _ in steps:
            for origin, (length, kept, _) in spans[middle].items():
                if kept + unchanged > max_unchanged:
                    continue
                known = into.get(origin)
                if known is None or length + 1 < known[0]:
                    into[origin] = (
                        length + 1,
                        kept + unchanged,
                        1 if known is None else known[2] + 1,
                    )
        spans.append(into)
    return [_arcs(number, cells, into, output) for number, into in enumerate(spans)]


Span = tuple[int, int, int]
"""of an arc: number of steps, number of unchanged tokens, and `Arc.times`"""


def _arcs(
    target: int, cells: Sequence[Cell], into: dict[int, Span], output: Sequence[str]
) -> list[Arc]:
    end, last = cells[target]
    arcs = []
    for origin, (steps, unchanged, times) in into.items():
        if steps == unchanged > 1:  # several unchanged tokens are no edit
            continue
        start, first = cells[origin]
        correction = " ".join(output[first:last])
        arcs.append(
            Arc(origin, target, start, end, correction, steps, steps > unchanged, times)
        )
    return arcs


def _is_unchanged(
    origin: Cell, target: Cell, source: Sequence[str], output: Sequence[str]
) -> bool:
    diagonal = target[0] > origin[0] and target[1] > origin[1]
    return diagonal and source[origin[0]] == output[origin[1]]


def _union(source: Sequence[str], output: Sequence[str]) -> dict[Cell, dict[Cell, int]]:
    """For each vertex, the vertices that a step leads from, each with its number of distances, 1 or 2."""
    numbers = {
        token: number for number, token in enumerate(dict.fromkeys([*source, *output]))
    }
    first = np.array([numbers[token] for token in source], dtype=np.int32)
    second = np.array([numbers[token] for token in output], dtype=np.int32)
    unequal = (first[:, None] != second[None, :]).astype(np.int32)  # n x m
    steps_into: dict[Cell, dict[Cell, int]] = {(0, 0): {}}
    for substitution in (1, 2):
        there = _distances(unequal, substitution)
        # from each vertex to the last
        back = _distances(unequal[::-1, ::-1], substitution)[::-1, ::-1]
        for down, right, ways in (
            (1, 1, there[:-1, :-1] + substitution * unequal + back[1:, 1:]),
            (1, 0, there[:-1] + 1 + back[1:]),
            (0, 1, there[:, :-1] + 1 + back[:, 1:]),
        ):
            # the step is on a shortest path
            for i, j in np.argwhere(ways == there[-1, -1]).tolist():
                origins = steps_into.setdefault((i + down, j + right), {})
                origins[i, j] = origins.get((i, j), 0) + 1
    return steps_into


def _distances(unequal: NDArray[np.int32], substitution: int) -> NDArray[np.int32]:
    """Levenshtein distances of all prefixes, (n + 1) x (m + 1)."""
    rows, columns = unequal.shape
    position = np.arange(columns + 1, dtype=np.int32)
    distances = np.empty((rows + 1, columns + 1), dtype=np.int32)
    distances[0] = position
    for i in range(1, rows + 1):
        row, above = distances[i], distances[i - 1]
        row[0] = i
        np.minimum(
            above[1:] + 1, above[:-1] + substitution * unequal[i - 1], out=row[1:]
        )
        # a run of insertions costs its length: a running minimum finds where it should begin
        row -= position
        np.minimum.accumulate(row, out=row)
        row += position
    return distances
