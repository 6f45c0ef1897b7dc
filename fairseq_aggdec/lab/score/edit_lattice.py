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

    origin: Cell
    target: Cell
    steps: int
    """insertions, deletions, substitutions and unchanged tokens"""
    unchanged: int
    """unchanged tokens"""
    times: int
    """how often the official scorer lists the arc, since it adds the weight of an edit that often: twice for a step
    that belongs to both distances; for a longer arc, once more each time a shorter way to it is found"""

    @property
    def span(self) -> tuple[int, int]:
        """The first source token that is replaced, and the position after the last."""
        return self.origin[0], self.target[0]

    @property
    def changes(self) -> bool:
        """Whether any step is not an unchanged token."""
        return self.steps > self.unchanged

    def correction(self, output: Sequence[str]) -> str:
        """The output tokens that replace the source's, joined by spaces."""
        return " ".join(output[self.origin[1] : self.target[1]])


Lattice = dict[Cell, list[Arc]]
"""the arcs that end in each vertex, from the first vertex to the last, (n, m)"""


def edit_lattice(
    source: Sequence[str], output: Sequence[str], max_unchanged: int = 2
) -> Lattice:
    """The lattice of n and m tokens; an arc of several steps has at most `max_unchanged` unchanged tokens."""
    arcs: dict[Cell, dict[Cell, Arc]] = {}  # into each vertex, by origin
    for cell, origins in sorted(_steps(source, output).items()):
        into: dict[Cell, Arc] = {}
        for origin, times in sorted(origins.items()):
            into[origin] = Arc(
                origin,
                cell,
                1,
                int(_is_unchanged(origin, cell, source, output)),
                times,
            )
        # A longer arc is an arc that is known by now, followed by one step. As in the official scorer, of several ways
        # the first with the fewest steps counts, even if another one has fewer unchanged tokens.
        for step in list(into.values()):
            for before in arcs[step.origin].values():
                steps = before.steps + 1
                kept = before.unchanged + step.unchanged
                known = into.get(before.origin)
                if kept > max_unchanged or (known and known.steps <= steps):
                    continue
                into[before.origin] = Arc(
                    before.origin,
                    cell,
                    steps,
                    kept,
                    known.times + 1 if known else 1,
                )
        arcs[cell] = into
    # several unchanged tokens are no edit
    return {
        cell: [arc for arc in into.values() if arc.changes or arc.steps == 1]
        for cell, into in arcs.items()
    }


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


def _steps(
    source: Sequence[str],
    output: Sequence[str],
) -> dict[Cell, dict[Cell, int]]:
    """For each vertex, the vertices that a step leads from, each with the count of its distances, 1 or 2."""
    tokens = np.array(source, dtype=object)[:, None]
    others = np.array(output, dtype=object)
    unequal = (tokens != others).astype(np.int32)  # n x m
    steps_into: dict[Cell, dict[Cell, int]] = {(0, 0): {}}
    for substitution in (1, 2):
        # from the first vertex to each, and from each to the last
        there = _distances(unequal, substitution)
        back = _distances(unequal[::-1, ::-1], substitution)[::-1, ::-1]
        # of the paths through each step
        substituted = there[:-1, :-1] + substitution * unequal + back[1:, 1:]
        deleted = there[:-1] + 1 + back[1:]
        inserted = there[:, :-1] + 1 + back[:, 1:]
        for down, right, lengths in (
            (1, 1, substituted),
            (1, 0, deleted),
            (0, 1, inserted),
        ):
            # the step is on a shortest path
            shortest = there[-1, -1]
            for i, j in np.argwhere(lengths == shortest).tolist():
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
