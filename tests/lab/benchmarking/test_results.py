"""Tests of `fairseq_aggdec.lab.benchmarking.results`."""

import pytest

from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.results import ModeResult


def test_a_round_is_the_sum_of_its_batches_and_the_median_round_counts() -> None:
    result = ModeResult(Mode.parse("iad"), 2, [[0, 1], [2]])
    result.latencies = [[1.0, 2.0], [10.0, 20.0], [0.5, 3.0]]
    assert result.rounds == [3.0, 30.0, 3.5]
    assert result.seconds == 3.5


def test_an_even_number_of_rounds_has_its_median_between_two() -> None:
    result = ModeResult(Mode.parse("greedy"), 1, [[0]], latencies=[[1.0], [2.0], [4.0], [9.0]])
    assert result.seconds == pytest.approx(3.0)


def test_results_do_not_share_their_lists() -> None:
    first, second = (ModeResult(Mode.parse(name), 1, [[0]]) for name in ("greedy", "iad"))
    first.latencies.append([1.0])
    assert second.latencies == []
    assert first.outputs is not second.outputs
