"""Widths of drafts: what they promise against what they cost."""

import random

import pytest

from fairseq_aggdec.decoding.draft_width import DrafterCost, DraftWidth

FREE_ROWS = 24
"""rows of the verifier that cost as much as reading its weights"""


def like_a_share(share: float) -> DrafterCost:
    """Of a drafter that costs a share of the verifier."""
    return DrafterCost(FREE_ROWS, share, share)


def learned(accepted: int, drafted: int, drafter: DrafterCost | None = None, free_rows: int = FREE_ROWS) -> DraftWidth:
    """After many drafts of so many tokens, of which so many were accepted."""
    widths = DraftWidth(free_rows, drafter)
    for _ in range(200):
        widths.learn([drafted] * 4, [accepted] * 4)
    return widths


def test_wide_where_all_is_accepted() -> None:
    assert learned(10, 10).choose(rows=32, longest=10) == 10


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_none_where_nothing_is_accepted(rows: int) -> None:
    assert learned(0, 10).choose(rows, longest=10) == 0


def test_the_more_rows_the_shorter() -> None:
    random_drafts = random.Random(1)
    widths = DraftWidth(FREE_ROWS)
    for _ in range(500):  # each token passes with a probability of two thirds
        passed = next((n for n in range(10) if random_drafts.random() > 2 / 3), 10)
        widths.learn([10], [passed])
    chosen = [widths.choose(rows, longest=10) for rows in (1, 2, 4, 8, 16, 32, 64)]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] >= 3
    assert chosen[-1] <= 1


@pytest.mark.parametrize("rows", [1, 32])
def test_no_further_than_what_ever_passes(rows: int) -> None:
    """Each position of a draft is judged by itself: three tokens are always right here, the fourth never is."""
    assert learned(3, 10).choose(rows, longest=10) == 3
    assert learned(3, 10).cut([10] * rows) == [3] * rows


def test_a_beginning_that_is_often_wrong_does_not_hide_what_comes_behind_it() -> None:
    """As with copies: once the first token is right, so are the others."""
    widths = DraftWidth(FREE_ROWS)
    for number in range(200):
        widths.learn([20], [20 if number % 2 else 0])
    assert widths.cut([20]) == [20]


def test_a_drafter_that_costs_something_is_asked_less_often() -> None:
    assert learned(2, 10).choose(8, 10) == 2
    assert learned(2, 10, drafter=like_a_share(2.0)).choose(8, 10) == 0


def test_a_drafter_that_has_much_to_read_first_is_asked_less_often() -> None:
    widths = learned(2, 10, drafter=like_a_share(0.2))
    assert widths.choose(8, 10) == 2
    assert widths.choose(8, 10, unread=200) == 0


def test_a_few_long_drafts_are_not_worth_the_width_of_all() -> None:
    widths = learned(10, 10, free_rows=8)
    assert widths.cut([10] * 8) == [10] * 8
    assert widths.cut([10] + [0] * 63) == [0] * 64


def test_one_row_alone_costs_nearly_nothing() -> None:
    assert DraftWidth(FREE_ROWS).cut([5]) == [5]


def test_new_drafts_count_more_than_old_ones() -> None:
    widths = learned(0, 5)
    assert widths.choose(8, 5) == 0
    for _ in range(100):
        widths.learn([5] * 4, [5] * 4)
    assert widths.choose(8, 5) == 5


def test_rows_without_a_draft_teach_nothing() -> None:
    widths = DraftWidth(FREE_ROWS)
    before = widths.choose(8, 10)
    for _ in range(500):
        widths.learn([0] * 8, [0] * 8)
    assert widths.choose(8, 10) == before


def test_a_drafter_that_seldom_has_an_idea_is_not_asked_in_a_batch() -> None:
    """Looking for copies costs a little, whether there are any or not."""
    widths = learned(10, 10)
    assert widths.choose(8, 10) == 10
    for _ in range(100):
        widths.see([0] * 7 + [1])
        widths.learn([0] * 7 + [1], [0] * 8)
    assert widths.choose(8, 10) == 0
    for _ in range(100):
        widths.see([10] * 8)
        widths.learn([10] * 8, [10] * 8)
    assert widths.choose(8, 10) == 10


def test_no_draft_has_no_width() -> None:
    widths = DraftWidth(FREE_ROWS)
    assert widths.cut([0] * 4) == [0] * 4
    assert widths.choose(4, 0) == 0


@pytest.mark.parametrize("rows", [1, 8])
def test_probes(rows: int) -> None:
    """Full width now and then, for a small part of the cost; where it does not pay, back to nothing."""
    widths = learned(0, 10, drafter=like_a_share(0.5))
    chosen = []
    for _ in range(3000):
        chosen.append(widths.choose(rows, 10))
        widths.learn([chosen[-1]] * rows, [0] * rows)
        if chosen[-1]:
            assert widths.cut([chosen[-1]] * rows) == [chosen[-1]] * rows
    assert set(chosen) == {0, 10}
    probes = chosen.count(10)
    extra = 10 * rows + FREE_ROWS + 0.5 * 10 * rows
    assert 0.003 < probes * extra / (3000 * (FREE_ROWS + rows)) < 0.006


def test_a_drafter_can_recover() -> None:
    widths = learned(0, 10)
    for number in range(8000):
        width = widths.choose(1, 10)
        widths.learn([width], [width])
        if width == 10 and not number % 500:
            return
    assert widths.choose(1, 10) == 10


def test_rows_that_are_packed_are_cut_by_the_kind_of_their_drafts() -> None:
    """Of three tokens of the first kind all pass, of the second none, of the third one."""
    widths = DraftWidth(FREE_ROWS)
    kinds = [0, 1, 2] * 10
    for _ in range(50):
        widths.learn([3] * 30, [3, 0, 1] * 10, kinds)
    assert widths.cut([3] * 30, kinds, packs=True) == [3, 0, 1] * 10
    assert widths.cut([2, 3, 0] * 10, kinds, packs=True) == [2, 0, 0] * 10
    assert len(set(widths.cut([3] * 30, kinds))) == 1


def test_a_few_good_drafts_are_worth_it_where_the_others_are_not_padded() -> None:
    widths = learned(10, 10)
    lengths = [10] * 4 + [0] * 28
    assert widths.cut(lengths) == [0] * 32
    assert widths.cut(lengths, packs=True) == lengths


def test_kinds_that_are_high_enough_are_one() -> None:
    widths = DraftWidth(FREE_ROWS)
    for _ in range(50):
        widths.learn([3] * 8, [0] * 8, [10] * 8)
    assert widths.cut([3] * 8, [30] * 8, packs=True) == [0] * 8


def test_drafts_are_asked_for_as_often_as_they_come_and_as_long_as_they_are() -> None:
    """Drafts of one kind are good and rare, those of the other frequent and bad."""
    widths = DraftWidth(FREE_ROWS)
    kinds = [1] + [2] * 31
    for _ in range(100):
        widths.see([20] * 32, kinds)
        widths.learn([20] * 32, [20] + [0] * 31, kinds)
    assert widths.choose(32, 32, packs=True) == 32
    for _ in range(100):
        widths.see([1] * 32, kinds)
        widths.learn([1] * 32, [1] + [0] * 31, kinds)
    assert widths.choose(32, 32, packs=True) == 0


def test_a_drafter_is_not_begun_for_the_last_tokens_of_a_batch() -> None:
    """Batches of two rows that are alike: with long sentences it pays to read what there is, with short ones not."""
    chosen = {}
    for length in (5, 60):
        widths = learned(3, 10, DrafterCost(12, 0.3, 0.3, start=30))
        for _ in range(30):
            for position in range(1, length):
                chosen[length] = widths.choose(2, 10, 2 * position, position=position)
                if chosen[length]:
                    break
    assert chosen[5] == 0
    assert chosen[60] in (3, 10)  # or a probe
