"""The lattice against Floyd and Warshall's algorithm on all pairs of vertices, as the official scorer goes about it."""

from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.lab.score.edit_lattice import edit_lattice

Cell = tuple[int, int]
TOKENS = st.lists(st.sampled_from("ab"), max_size=4)


def shortest_steps(source: list[str], output: list[str], substitution: int) -> set[tuple[Cell, Cell]]:
    """All steps that are on a shortest path."""

    def steps_from(i: int, j: int) -> list[tuple[Cell, int]]:
        can_delete, can_insert = i < len(source), j < len(output)
        steps = [((i + 1, j), 1)] * can_delete + [((i, j + 1), 1)] * can_insert
        if can_delete and can_insert:
            steps.append(((i + 1, j + 1), 0 if source[i] == output[j] else substitution))
        return steps

    @cache
    def left(cell: Cell) -> int:
        return min((cost + left(after) for after, cost in steps_from(*cell)), default=0)

    found, reached = set(), {(0, 0)}
    for cell in product(range(len(source) + 1), range(len(output) + 1)):
        for after, cost in steps_from(*cell) if cell in reached else ():
            if left(cell) == cost + left(after):
                found.add((cell, after))
                reached.add(after)
    return found


def slow_arcs(source: list[str], output: list[str], most: int) -> dict[tuple[Cell, Cell], tuple[int, int]]:
    """Arcs with their steps and unchanged tokens."""
    steps = shortest_steps(source, output, 1) | shortest_steps(source, output, 2)
    cells = sorted({cell for step in steps for cell in step} | {(0, 0)})
    arcs = {}
    for (i, j), (i2, j2) in steps:
        arcs[(i, j), (i2, j2)] = (1, int(i2 > i and j2 > j and source[i] == output[j]))
    for middle, before, after in product(cells, repeat=3):
        if (before, middle) in arcs and (middle, after) in arcs:
            length, kept = (sum(pair) for pair in zip(arcs[before, middle], arcs[middle, after], strict=True))
            if length < arcs.get((before, after), (float("inf"), 0))[0] and kept <= most:
                arcs[before, after] = (length, kept)
    return {arc: (length, kept) for arc, (length, kept) in arcs.items() if not length == kept > 1}


@settings(max_examples=60, deadline=None)
@given(source=TOKENS, output=TOKENS, most=st.integers(0, 3))
def test_same_arcs_as_the_slow_way(source: list[str], output: list[str], most: int) -> None:
    slow = slow_arcs(source, output, most)
    cells = sorted({cell for arc in slow for cell in arc} | {(0, 0)})
    lattice = edit_lattice(source, output, most)
    assert len(lattice) == len(cells)
    fast = {(cells[arc.origin], cells[arc.target]): arc for arcs in lattice for arc in arcs}
    assert fast.keys() == slow.keys()
    for (begin, end), arc in fast.items():
        steps, unchanged = slow[begin, end]
        assert arc[2:7] == (begin[0], end[0], " ".join(output[begin[1] : end[1]]), steps, steps > unchanged)
