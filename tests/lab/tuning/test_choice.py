from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.lab.tuning.choice import all_settings, high_efficiency, high_quality, pareto_front
from fairseq_aggdec.lab.tuning.points import Point, Setting
from tests.lab.tuning.papers import GREEDY, point, table_7

POINTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=8, unique=True).map(
    lambda cells: [point(number, 3, 1.0, accepted, quality) for number, (accepted, quality) in enumerate(cells)]
)


def test_the_papers_table() -> None:
    points = table_7()
    careful = high_quality(points, GREEDY, margin=0.4)
    efficient = high_efficiency(points, GREEDY, loss=-0.2)
    assert careful is not None
    assert efficient is not None
    assert careful.setting == Setting(25, 5, 1.0)
    assert efficient.setting == Setting(25, 5, 3.0)  # the authors' choice
    bold = high_quality(points, GREEDY)
    assert bold is not None
    assert bold.setting == Setting(25, 5, 5.0)


def test_none_may_be_good_enough() -> None:
    points = [point(10, 3, 1.0, 5.0, 20.0)]
    assert high_quality(points, 26.0) is None
    assert high_efficiency(points, 26.0, loss=6.0) == points[0]


def test_equally_fast_points() -> None:
    better, worse = point(20, 3, 1.0, 5.0, 27.0), point(10, 3, 1.0, 5.0, 26.0)
    assert high_quality([worse, better], 25.0) == better
    assert high_quality([point(20, 3, 1.0, 5.0, 26.0), worse], 25.0) == worse
    assert pareto_front([worse, better]) == [better]


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


def test_settings() -> None:
    assert all_settings([10, 25], [3], [1.0]) == [Setting(10, 3, 1.0), Setting(25, 3, 1.0)]
    assert all_settings([25], [3, 5], [1.0, 2.0]) == [
        Setting(25, 3, 1.0),
        Setting(25, 3, 2.0),
        Setting(25, 5, 1.0),
        Setting(25, 5, 2.0),
    ]
