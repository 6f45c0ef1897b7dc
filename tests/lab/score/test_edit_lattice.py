"""The lattice against Floyd and Warshall's algorithm on all pairs of vertices, as the official scorer goes about it."""

from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.lab.score.edit_lattice import edit_lattice

Cell = tuple[int, int]
TOKENS = st.lists(st.sampled_from("ab"), max_size=4)


def shortest_steps(source: list[str], output: list[str], substitution: int) -> set[tuple[Cell, Cell]]:
    """Steps on shortest paths: those whose way there, cost and way on add up to the distance."""
    n, m = len(source), len(output)

    @cache
    def distance(a: Cell, b: Cell) -> float:
        if a == b:
            return 0
        return min(
            (cost + distance(middle, b) for middle, cost in steps_from(a) if middle[0] <= b[0] and middle[1] <= b[1]),
            default=float("inf"),
        )

    def steps_from(cell: Cell) -> list[tuple[Cell, int]]:
        i, j = cell
        diagonal = [((i + 1, j + 1), 0 if source[i] == output[j] else substitution)] if i < n and j < m else []
        return diagonal + [((i + 1, j), 1)] * (i < n) + [((i, j + 1), 1)] * (j < m)

    start, goal = (0, 0), (n, m)
    return {
        (cell, after)
        for cell in product(range(n + 1), range(m + 1))
        for after, cost in steps_from(cell)
        if distance(start, cell) + cost + distance(after, goal) == distance(start, goal)
    }


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
