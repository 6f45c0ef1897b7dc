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
    """index of the first vertex"""
    target: int
    """index of the last vertex"""
    start: int
    """first source token that is replaced"""
    end: int
    """position after the last source token that is replaced"""
    correction: str
    """the output tokens that replace them, joined by spaces"""
    steps: int
    """insertions, deletions, substitutions and unchanged tokens"""
    changes: bool
    """whether any step is not an unchanged token"""
    times: int
    """how often the official scorer lists the arc, since it adds the weight of an edit that often: twice for a step
    that belongs to both distances; for a longer arc, once more each time a shorter way to it is found"""


Lattice = list[list[Arc]]
"""the arcs that end in each vertex; arcs lead from lower to higher vertices, and the last vertex is (n, m)"""


class Span(NamedTuple):
    """What of an arc does not depend on its tokens."""

    steps: int
    unchanged: int
    """unchanged tokens"""
    times: int
    """see `Arc.times`"""


def edit_lattice(
    source: Sequence[str], output: Sequence[str], max_unchanged: int = 2
) -> Lattice:
    """The lattice of n and m tokens; an arc of several steps has at most `max_unchanged` unchanged tokens."""
    steps_into = _steps(source, output)
    cells = sorted(steps_into)
    index = {cell: place for place, cell in enumerate(cells)}
    spans: list[dict[int, Span]] = []  # into each vertex, by origin
    for cell in cells:
        into: dict[int, Span] = {}
        for before, times in sorted(steps_into[cell].items()):
            is_unchanged = _is_unchanged(before, cell, source, output)
            into[index[before]] = Span(1, int(is_unchanged), times)
        # A longer arc is an arc that is known by now, followed by one step. As in the official scorer, of several ways
        # the first with the fewest steps counts, even if another one has fewer unchanged tokens.
        for middle, step in list(into.items()):
            for origin, span in spans[middle].items():
                steps = span.steps + 1
                unchanged = span.unchanged + step.unchanged
                known = into.get(origin)
                if unchanged > max_unchanged or (known and known.steps <= steps):
                    continue
                into[origin] = Span(steps, unchanged, known.times + 1 if known else 1)
        spans.append(into)
    return [_arcs(target, cells, into, output) for target, into in enumerate(spans)]


def _arcs(
    target: int,
    cells: Sequence[Cell],
    into: dict[int, Span],
    output: Sequence[str],
) -> list[Arc]:
    """The arcs into a vertex; several unchanged tokens are no edit."""
    end, last = cells[target]
    arcs = []
    for origin, (steps, unchanged, times) in into.items():
        changes = steps > unchanged
        if steps == 1 or changes:
            start, first = cells[origin]
            arcs.append(
                Arc(
                    origin,
                    target,
                    start,
                    end,
                    " ".join(output[first:last]),
                    steps,
                    changes,
                    times,
                )
            )
    return arcs


def _is_unchanged(
    origin: Cell,
    target: Cell,
    source: Sequence[str],
    output: Sequence[str],
) -> bool:
    """Whether a step keeps a token."""
    i, j = origin
    is_diagonal = target[0] > i and target[1] > j
    return is_diagonal and source[i] == output[j]


def _steps(source: Sequence[str], output: Sequence[str]) -> dict[Cell, dict[Cell, int]]:
    """For each vertex, the vertices that a step leads from, each with the count of its distances, 1 or 2."""
    tokens = np.array(source, dtype=object)[:, None]
    unequal = (tokens != np.array(output, dtype=object)).astype(np.int32)  # n x m
    steps_into: dict[Cell, dict[Cell, int]] = {(0, 0): {}}
    for substitution in (1, 2):
        # from the first vertex to each, and from each to the last
        there = _distances(unequal, substitution)
        back = _distances(unequal[::-1, ::-1], substitution)[::-1, ::-1]
        for down, right, lengths in (
            (1, 1, there[:-1, :-1] + substitution * unequal + back[1:, 1:]),
            (1, 0, there[:-1] + 1 + back[1:]),
            (0, 1, there[:, :-1] + 1 + back[:, 1:]),
        ):
            # the step is on a shortest path
            for i, j in np.argwhere(lengths == there[-1, -1]).tolist():
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
        row = distances[i]
        above = distances[i - 1]
        row[0] = i
        substituted = above[:-1] + substitution * unequal[i - 1]
        np.minimum(above[1:] + 1, substituted, out=row[1:])
        # a run of insertions costs its length: a running minimum finds where it should begin
        row -= position
        np.minimum.accumulate(row, out=row)
        row += position
    return distances
