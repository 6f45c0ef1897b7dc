"""Counters add up, and the summary line says what they are."""

import re

import pytest

from fairseq_aggdec.decoding.stats import DecodingTotals, SentenceStats

EDITED = SentenceStats(drafted=[5, 0, 0, 3], accepted=[2, 0, 0, 3], committed=[3, 1, 1, 3])
COPIED = SentenceStats(drafted=[6], accepted=[6], committed=[6])


def test_totals_and_their_summary_whose_shares_are_the_whole() -> None:
    totals = DecodingTotals()
    totals.add(EDITED)
    totals.add(COPIED)
    assert (totals.sentences, totals.iterations, totals.committed) == (2, 5, 14)
    assert (totals.drafted, totals.accepted, totals.single_steps) == (14, 11, 2)
    assert totals.mean_iterations == 2.5
    assert totals.mean_accepted_tokens == pytest.approx(14 / 5)
    assert totals.acceptance_rate == pytest.approx(11 / 14)
    line = totals.summary()
    for figure in ("2 sentences", "2.50 iterations/sentence", "2.80 mean accepted tokens", "acceptance rate 78.6%"):
        assert figure in line
    shares = [float(share) for share in re.findall(r"([\d.]+)%", line.partition("output tokens:")[2])]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(100, abs=0.15)
    assert "14.3% single steps" in line
