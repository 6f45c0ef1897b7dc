"""MaxMatch: splits an output into the edits that match the most gold edits (Dahlmeier and Ng 2012).

The edits are those of the shortest path through the edit lattice, in which an arc that is a gold edit has a negative
weight. The counts are those of the official scorer (version 3.2 with its later corrections), peculiarities included:

- Other arcs weigh as much as their steps, plus 0.001 if they change anything. Of equally long paths the one with fewer
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
from itertools import chain

from fairseq_aggdec.lab.score.edit_lattice import Arc, Cell, Lattice
from fairseq_aggdec.lab.score.m2_file import Edit

_EDIT = 0.001
"""additional weight of an arc that changes something"""


def best_edits(
    lattice: Lattice, output: Sequence[str], gold: Sequence[Edit] = ()
) -> list[Edit]:
    """The edits that match the most gold edits of one annotator, in the order of the file; by position."""
    weights = _weights_of_matches(lattice, output, gold)
    # the shortest path to each vertex: its length, and its last arc
    best: dict[Cell, float] = {}
    last: dict[Cell, Arc] = {}
    for cell, arcs in lattice.items():
        if not arcs:  # the first vertex
            best[cell] = 0.0
            continue
        lengths = [
            best[arc.origin] + weights.get(arc, _plain_weight(arc)) for arc in arcs
        ]
        best[cell] = min(lengths)
        last[cell] = arcs[lengths.index(best[cell])]
    edits = []
    cell = max(lattice)
    while cell in last:
        arc = last[cell]
        if arc.changes:
            edits.append(Edit(*arc.span, (arc.correction(output),)))
        cell = arc.origin
    return edits[::-1]


def _plain_weight(arc: Arc) -> float:
    weight = float(arc.steps)
    if arc.changes:
        # added one by one: the rounding, as in the official scorer, decides between equals
        for _ in range(arc.times):
            weight += _EDIT
    return weight


def _weights_of_matches(
    lattice: Lattice, output: Sequence[str], gold: Sequence[Edit]
) -> dict[Arc, float]:
    """Weights of the arcs that are gold edits, and of all arcs where a gold edit inserts."""
    golds: dict[tuple[int, int], list[Edit]] = {}
    for edit in gold:
        golds.setdefault((edit.start, edit.end), []).append(edit)
    at: dict[tuple[int, int], list[Arc]] = {}
    total = 0
    for arc in chain.from_iterable(lattice.values()):
        total += arc.times
        if arc.span in golds:
            at.setdefault(arc.span, []).append(arc)
    match = -float(total)  # outweighs any path
    weights: dict[Arc, float] = {}
    for span, arcs in at.items():
        choices = golds[span]
        if span[0] == span[1]:
            listed = [arc for arc in sorted(arcs) for _ in range(arc.times)]
            weights |= _weights_of_insertions(listed, output, choices, match)
            continue
        # a path has at most one arc over these tokens, so a gold edit cannot match twice
        for arc in arcs:
            text = arc.correction(output)
            if any(text in edit.corrections for edit in choices):
                weights[arc] = match
    return weights


def _weights_of_insertions(
    arcs: Sequence[Arc], output: Sequence[str], gold: Sequence[Edit], match: float
) -> dict[Arc, float]:
    """Weights of the arcs that insert at one place, where a path may have several.

    `arcs` are sorted by origin, then target, each as often as the official scorer lists it; `gold` are the gold
    insertions at this place; `match` is the weight of an arc that is one.
    """
    weights = {arc: float(arc.steps) for arc in arcs}
    left = 0
    right = len(arcs) - 1
    free = list(gold)
    turn = left
    while left <= right:
        arc = arcs[turn]
        from_left = turn == left
        text = arc.correction(output)
        fitting = [place for place, edit in enumerate(free) if text in edit.corrections]
        if from_left:
            left += 1
        else:
            right -= 1
        # no match: the other end's turn
        if not fitting:
            weights[arc] += _EDIT
            turn = right if from_left else left
            continue
        # a match: arcs that do not continue it are skipped, and those of this end go on
        weights[arc] = match
        if from_left:
            del free[: fitting[0] + 1]
            while left < len(arcs) and arcs[left].origin != arc.target:
                weights[arcs[left]] += _EDIT
                left += 1
            turn = left
        else:
            del free[fitting[-1] :]
            while right >= 0 and arcs[right].target != arc.origin:
                weights[arcs[right]] += _EDIT
                right -= 1
            turn = right
    return weights


def count_correct(edits: Sequence[Edit], gold: Sequence[Edit]) -> int:
    """How many edits are gold edits, searched in the order of both lists."""
    correct = begin = 0
    for edit in edits:
        for place in range(begin, len(gold)):
            other = gold[place]
            is_at = (edit.start, edit.end) == (other.start, other.end)
            if is_at and edit.corrections[0] in other.corrections:
                correct += 1
                begin = place + 1
    return correct
