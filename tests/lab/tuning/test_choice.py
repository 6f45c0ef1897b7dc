from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.lab.tuning.choice import pareto_front
from fairseq_aggdec.lab.tuning.points import Point
from tests.lab.tuning.papers import point

POINTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=8, unique=True).map(
    lambda cells: [point(number, 3, 1.0, accepted, quality) for number, (accepted, quality) in enumerate(cells)]
)


def beats(other: Point, mine: Point) -> bool:
    return (
        other.quality >= mine.quality
        and other.seconds <= mine.seconds
        and (other.quality, other.seconds) != (mine.quality, mine.seconds)
    )


@given(points=POINTS)
def test_nothing_beats_the_pareto_front_and_something_all_else(points: list[Point]) -> None:
    front = pareto_front(points)
    for mine in points:
        assert (mine in front) == (not any(beats(other, mine) for other in points))
    assert [mine.seconds for mine in front] == sorted((mine.seconds for mine in front), reverse=True)
