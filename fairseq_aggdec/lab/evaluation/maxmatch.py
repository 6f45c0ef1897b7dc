"""MaxMatch: the reading of an output as edits that has most in common with the gold edits (Dahlmeier and Ng 2012).

The shortest path through the edit lattice, where an arc that is a gold edit weighs less than nothing. Counts are those
of the official scorer (version 3.2 with its later corrections), its peculiarities included:

- Other arcs weigh their number of steps, plus 0.001 if they change anything: of equally long paths the one with fewer
  edits counts, so that edits beside each other, or with at most `max_unchanged` tokens between them, count as one. The
  official scorer adds the 0.001 as often as it lists the arc (`Arc.times`), so that this rule has exceptions.
- A gold insertion is given to one arc at most: arcs at its place are looked at from both ends in turns, each time for
  the first gold insertion (from the other end, the last) that is not yet given away.
- Correct edits are counted in the order of the gold edits: what is out of order in the file may be missed, and an edit
  that stands there twice counts twice.

The lattice has no cycles, so that one pass over its vertices in order finds the path; the official scorer adds arcs by
Floyd and Warshall's and finds the path by Bellman and Ford's algorithm, which takes hours for long sentences. Where
source and output have nothing in common, arcs still join nearly all pairs of vertices: half a minute for 60 tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairseq_aggdec.data.m2_file import GoldEdit
from fairseq_aggdec.lab.evaluation.edit_lattice import Arc, EditLattice

_EDIT = 0.001
"""what an arc that changes something weighs more than its steps"""


class Edit(NamedTuple):
    """The source tokens from `start` up to `end` have become the correction."""

    start: int
    end: int
    correction: str


def best_edits(lattice: EditLattice, gold: Sequence[GoldEdit] = ()) -> list[Edit]:
    """The edits of the path that matches most gold edits, by position.

    Args:
        lattice: of a source and an output.
        gold: edits of one annotator, in the file's order.
    """
    weights = _weights_of_matches(lattice, gold)
    best = [0.0] * len(lattice.arcs_into)
    came_by: list[Arc | None] = [None] * len(lattice.arcs_into)
    for number, arcs in enumerate(lattice.arcs_into[1:], start=1):
        lightest = None
        for arc in arcs:
            weight = weights.get(arc) if weights else None
            if weight is None:
                weight = _plain_weight(arc)
            total = best[arc.origin] + weight
            if lightest is None or total < lightest:
                lightest, came_by[number] = total, arc
        assert lightest is not None  # every vertex is on a path from the first one
        best[number] = lightest
    edits = []
    last = came_by[-1]
    while last is not None:
        if last.changes:
            edits.append(Edit(last.start, last.end, last.correction))
        last = came_by[last.origin]
    return edits[::-1]


def _plain_weight(arc: Arc) -> float:
    weight = float(arc.steps)
    if arc.changes:
        for _ in range(arc.times):  # one by one: rounded as in the official scorer, where it decides between equals
            weight += _EDIT
    return weight


def _weights_of_matches(lattice: EditLattice, gold: Sequence[GoldEdit]) -> dict[Arc, float]:
    """Weights of the arcs that are gold edits, and of others that lie where one inserts."""
    golds: dict[tuple[int, int], list[GoldEdit]] = {}
    for edit in gold:
        golds.setdefault((edit.start, edit.end), []).append(edit)
    if not golds:
        return {}
    at: dict[tuple[int, int], list[Arc]] = {}
    for arcs in lattice.arcs_into:
        for arc in arcs:
            if (arc.start, arc.end) in golds:
                at.setdefault((arc.start, arc.end), []).append(arc)
    match = -float(sum(arc.times for arcs in lattice.arcs_into for arc in arcs))  # more than any path weighs
    weights: dict[Arc, float] = {}
    for (start, end), arcs in at.items():
        choices = golds[start, end]
        if start == end:
            listed = [arc for arc in sorted(arcs) for _ in range(arc.times)]
            weights.update(_weights_of_insertions(listed, choices, match))
        else:  # a path covers these tokens once: no need to choose
            weights.update((arc, match) for arc in arcs if any(arc.correction in edit.corrections for edit in choices))
    return weights


def _weights_of_insertions(arcs: Sequence[Arc], gold: Sequence[GoldEdit], match: float) -> dict[Arc, float]:
    """Weights of the arcs that insert at one place: several may follow one another, as may gold edits.

    Args:
        arcs: sorted by origin, then target; each as often as the official scorer lists it.
        gold: insertions at this place.
        match: weight of an arc that is one of them.
    """
    weights = {arc: float(arc.steps) for arc in arcs}
    left, right = 0, len(arcs) - 1
    first, last = 0, len(gold) - 1  # not given away yet
    turn = left
    while left <= right:
        arc, from_left = arcs[turn], turn == left
        free = range(first, last + 1)
        found = next((n for n in (free if from_left else free[::-1]) if arc.correction in gold[n].corrections), None)
        if from_left:
            left += 1
        else:
            right -= 1
        if found is None:
            weights[arc] += _EDIT
            turn = right if from_left else left
        elif from_left:
            weights[arc], first = match, found + 1
            while left < len(arcs) and arcs[left].origin != arc.target:
                weights[arcs[left]] += _EDIT
                left += 1
            turn = left
        else:
            weights[arc], last = match, found - 1
            while right >= 0 and arcs[right].target != arc.origin:
                weights[arcs[right]] += _EDIT
                right -= 1
            turn = right
    return weights


def count_correct(edits: Sequence[Edit], gold: Sequence[GoldEdit]) -> int:
    """How many edits are gold edits, in the order of both."""
    correct = begin = 0
    for edit in edits:
        for number in range(begin, len(gold)):
            other = gold[number]
            if (edit.start, edit.end) == (other.start, other.end) and edit.correction in other.corrections:
                correct += 1
                begin = number + 1
    return correct
