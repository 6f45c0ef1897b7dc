"""Widths of drafts: what they promise against what they cost."""

import pytest

from fairseq_aggdec.decoding.draft_width import DraftWidth


def learned(free_rows: int, accepted: int, drafted: int, drafter_share: float = 0.0) -> DraftWidth:
    """After many drafts of which so much passed."""
    widths = DraftWidth(free_rows, drafter_share)
    for _ in range(200):
        widths.learn([drafted] * 4, [accepted] * 4)
    return widths


def test_wide_where_all_is_accepted() -> None:
    assert learned(24, 10, 10).choose(rows=32, longest=10) == 10


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_none_where_nothing_is_accepted(rows: int) -> None:
    assert learned(24, 0, 10).choose(rows, longest=10) == 0


def test_the_more_rows_the_shorter() -> None:
    widths = [learned(24, 2, 10).choose(rows, longest=10) for rows in (1, 2, 4, 8, 16, 32, 64)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] >= 3
    assert widths[-1] <= 1


def test_a_drafter_that_costs_something_is_asked_less_often() -> None:
    free, costly = (learned(24, 3, 10, share) for share in (0.0, 1.0))
    assert free.choose(8, 10) > costly.choose(8, 10)


def test_a_few_long_drafts_are_not_worth_the_width_of_all() -> None:
    widths = learned(8, 4, 5)
    assert widths.choose(8, 10, [10] * 8) > 0
    assert widths.choose(8, 10, [10] + [0] * 7) == 0


def test_one_row_alone_costs_nearly_nothing() -> None:
    assert DraftWidth(24).choose(1, 5, [5]) == 5


def test_new_drafts_count_more_than_old_ones() -> None:
    widths = learned(24, 0, 5)
    assert widths.choose(8, 5) == 0
    for _ in range(100):
        widths.learn([5] * 4, [5] * 4)
    assert widths.choose(8, 5) == 5


def test_rows_without_a_draft_teach_nothing() -> None:
    widths = DraftWidth(24)
    before = widths.choose(8, 10)
    for _ in range(500):
        widths.learn([0] * 8, [0] * 8)
    assert widths.choose(8, 10) == before


def test_no_draft_has_no_width() -> None:
    assert DraftWidth(24).choose(4, 0, [0] * 4) == 0
