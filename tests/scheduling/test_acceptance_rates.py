"""What is learnt of drafts and of the ends of batches."""

import pytest

from fairseq_aggdec.scheduling.acceptance_rates import AcceptanceRates


def learned(*drafts: tuple[str, int, int, int], times: int = 100) -> AcceptanceRates:
    """From drafts again and again: kind, failures, verified, accepted."""
    rates = AcceptanceRates(0.5)
    for _ in range(times):
        for draft in drafts:
            rates.learn(*draft)
    return rates


def test_chances_are_learnt_for_each_kind_and_position() -> None:
    rates = learned(("all", 0, 2, 2), ("first", 0, 2, 1), ("none", 0, 2, 0))
    assert rates.chances("all", 0, 2)[:2] == pytest.approx([1, 1], abs=0.1)
    assert rates.chances("first", 0, 2)[:2] == pytest.approx([1, 0], abs=0.1)
    assert rates.chances("none", 0, 2)[:2] == pytest.approx([0, 0], abs=0.1)


def test_drafts_that_end_say_nothing_of_what_would_have_come_behind() -> None:
    """Half the drafts have two tokens, half four; the fourth never passes."""
    rates = learned(("kind", 0, 2, 2), ("kind", 0, 4, 3))
    assert rates.chances("kind", 0, 4)[:4] == pytest.approx([1, 1, 1, 0], abs=0.15)


def test_rows_whose_drafts_have_failed_are_told_apart() -> None:
    rates = learned(("kind", 0, 1, 1), ("kind", 1, 1, 0))
    fresh, failed, failed_more, lost = (rates.chances("kind", failures, 1)[0] for failures in (0, 1, 2, 99))
    assert fresh > 0.9
    assert failed < 0.1
    assert failed_more == lost == failed  # what one failure fewer has told


def test_new_drafts_count_more_than_old_ones() -> None:
    rates = learned(("kind", 0, 1, 0), times=1000)
    assert rates.chances("kind", 0, 1)[0] < 0.05
    for _ in range(300):
        rates.learn("kind", 0, 1, 1)
    assert rates.chances("kind", 0, 1)[0] > 0.7
