"""Which size of draft pays by measured times of passes."""

import random

import pytest

from fairseq_aggdec.decoding.tokens import BY_A_MODEL, Draft, Outcome
from fairseq_aggdec.scheduling.measured import MeasuredGoodput
from tests.support.scripted_decoding import outputs_of

SIZES = [0, 3, 7, 15]
"""the ends of buckets"""
ALONE = dict(zip(SIZES, (0.25, 0.26, 0.27, 0.30), strict=True))
"""milliseconds of an iteration of one row"""
MANY = dict(zip(SIZES, (0.30, 0.40, 0.60, 1.10), strict=True))
"""of 32 rows"""


def schedule(chance: float, measured: bool = True) -> MeasuredGoodput:
    """One that has seen 1000 drafts whose tokens each pass with a chance."""
    found, rng = MeasuredGoodput(SIZES, BY_A_MODEL), random.Random(1)
    for _ in range(1000):
        accepted = next(number for number in range(1000) if rng.random() > chance)
        found.learn(Draft.none(1), Outcome([15], [min(15, accepted)], [1], None))
    if measured:
        found.time_of = lambda rows, size: (ALONE if rows == 1 else MANY)[size]
    return found


@pytest.mark.parametrize(
    ("chance", "rows", "size"), [(0.9, 1, 15), (0.5, 1, 7), (0.9, 32, 7), (0.5, 32, 3), (0.05, 32, 0)]
)
def test_drafts_are_cut_at_the_end_of_a_bucket_where_more_tokens_cost_more_than_they_bring(
    chance: float, rows: int, size: int
) -> None:
    assert schedule(chance).limits(outputs_of([[]] * rows)) == [size] * rows


def test_what_is_free_is_drafted_and_drafts_of_what_is_not_measured_are_whole() -> None:
    free = schedule(0.5)
    free.time_of = lambda rows, size: 0.25
    for found in (free, schedule(0.05, measured=False)):
        assert found.limits(outputs_of([[]])) == [15]


def test_sizes_are_measured_in_the_first_iterations_where_they_may_pay() -> None:
    """Each once: it is assumed to take no longer than a smaller one."""
    found, known = schedule(0.5), dict[int, float]()
    found.time_of = lambda rows, size: known.get(size)
    tried = []
    for _ in range(6):
        (size, *_) = found.limits(outputs_of([[]] * 32))
        known[size] = MANY[size]
        tried.append(size)
    assert tried == [15, 0, 7, 3, 3, 3]
