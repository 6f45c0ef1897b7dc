"""MaxMatch: splits an output into the edits that match the most gold edits (Dahlmeier and Ng 2012).

The edits are those of the shortest path through the edit lattice, in which an arc that is a gold edit has a negative
weight. The counts are those of the official scorer (version 3.2 with its later corrections), peculiarities included:

- Other arcs weigh their number of steps, plus 0.001 if they change anything. Of equally long paths the one with fewer
  edits wins, so adjacent edits, or edits at most `max_unchanged` tokens apart, become one. The official scorer
  adds the 0.001 as often as it lists the arc (`Arc.times`), which makes exceptions to this rule.
- A gold insertion matches one arc at most. The arcs at its place are visited from both ends in turns; an arc from the
  left takes the first gold insertion that fits and is still free, an arc from the right the last.
- Correct edits are counted in the order of the gold edits: a gold edit that is out of order in the file may be missed,
  and one that is there twice counts twice.

The lattice has no cycles, so one pass over its vertices finds the path. (The official scorer adds the arcs by the
algorithm of Floyd and Warshall and finds the path by that of Bellman and Ford, which takes hours for long sentences.)
If source and output have nothing in common, arcs join nearly all pairs of vertices: 60 tokens take half a minute.
"""

from collections.abc import Sequence

from fairseq_aggdec.lab.score.edit_lattice import Arc, Lattice
from fairseq_aggdec.lab.score.m2_file import Edit

_EDIT = 0.001
"""additional weight of an arc that changes something"""


def best_edits(lattice: Lattice, gold: Sequence[Edit] = ()) -> list[Edit]:
    """The edits that match the most gold edits of one annotator, in the order of the file; by position."""
    weights = _weights_of_matches(lattice, gold)
    best = [0.0] * len(lattice)
    came_by: list[Arc | None] = [None] * len(lattice)
    for number, arcs in enumerate(lattice[1:], start=1):
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
            edits.append(Edit(last.start, last.end, (last.correction,)))
        last = came_by[last.origin]
    return edits[::-1]


def _plain_weight(arc: Arc) -> float:
    weight = float(arc.steps)
    if arc.changes:
        # added one by one: the rounding, as in the official scorer, decides between equals
        for _ in range(arc.times):
            weight += _EDIT
    return weight


def _weights_of_matches(lattice: Lattice, gold: Sequence[Edit]) -> dict[Arc, float]:
    """Weights of the arcs that are gold edits, and of all arcs where a gold edit inserts."""
    golds: dict[tuple[int, int], list[Edit]] = {}
    for edit in gold:
        golds.setdefault((edit.start, edit.end), []).append(edit)
    if not golds:
        return {}
    at: dict[tuple[int, int], list[Arc]] = {}
    for arcs in lattice:
        for arc in arcs:
            if (arc.start, arc.end) in golds:
                at.setdefault((arc.start, arc.end), []).append(arc)
    # outweighs any path
    match = -float(sum(arc.times for arcs in lattice for arc in arcs))
    weights: dict[Arc, float] = {}
    for (start, end), arcs in at.items():
        choices = golds[start, end]
        if start == end:
            listed = [arc for arc in sorted(arcs) for _ in range(arc.times)]
            weights.update(_weights_of_insertions(listed, choices, match))
        else:
            # a path has at most one arc over these tokens, so a gold edit cannot match twice
            weights.update(
                (arc, match)
                for arc in arcs
                if any(arc.correction in edit.corrections for edit in choices)
            )
    return weights


def _weights_of_insertions(
    arcs: Sequence[Arc], gold: Sequence[Edit], match: float
) -> dict[Arc, float]:
    """Weights of the arcs that insert at one place, where a path may have several.

    `arcs` are sorted by origin, then target, each as often as the official scorer lists it; `gold` are the gold
    insertions at this place; `match` is the weight of an arc that is one.
    """
    weights = {arc: float(arc.steps) for arc in arcs}
    left, right = 0, len(arcs) - 1
    first, last = 0, len(gold) - 1  # gold insertions that are still free
    turn = left
    while left <= right:
        arc, from_left = arcs[turn], turn == left
        free = range(first, last + 1)
        found = next(
            (
                n
                for n in (free if from_left else free[::-1])
                if arc.correction in gold[n].corrections
            ),
            None,
        )
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


def count_correct(edits: Sequence[Edit], gold: Sequence[Edit]) -> int:
    """Number of edits that are gold edits, searched in the order of both lists."""
    correct = begin = 0
    for edit in edits:
        for number in range(begin, len(gold)):
            other = gold[number]
            if (edit.start, edit.end) == (other.start, other.end) and edit.corrections[
                0
            ] in other.corrections:
                correct += 1
                begin = number + 1
    return correct
