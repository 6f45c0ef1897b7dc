"""Numbers looked up in results."""

import pytest

from fairseq_aggdec.lab.reporting.counterparts import Source
from fairseq_aggdec.lab.reporting.measures import value
from fairseq_aggdec.lab.reporting.results import Decoding
from tests.lab.reporting.made_up import made_up_results


def look_up(measure: str, label: str = "gad", **fields: object) -> float | None:
    settings: dict = {"measure": measure, "label": label, "record": "bench", **fields}
    return value(made_up_results(), Source(**settings).filled())


def test_counters_of_the_whole_test_set_come_first() -> None:
    assert look_up("iterations") == 2.5  # 100 of 40 sentences
    assert look_up("accepted tokens") == 4.7
    assert look_up("acceptance %") == 46.25
    assert look_up("iterations", label="gad++-3-1") == 2.0  # of the sentences that were timed
    assert look_up("accepted tokens", label="gad++-3-1") == 46 / 8
    assert look_up("iterations", label="beam5") is None


def test_times() -> None:
    # made_up_run: the second of three rounds takes 1.5 times as long as the first, and batches differ alike in all
    assert look_up("speed-up") == pytest.approx(4.0)
    assert look_up("speed-up", label="gad++-3-1") == pytest.approx(5.0)  # gad++:3:1 of aggdec bench
    assert look_up("speed-up", over="beam1") == pytest.approx(2.0)
    assert look_up("speed-up", record="bench/other", over_record="bench") is None
    assert look_up("seconds") == pytest.approx(0.1 * 1.5 * 4.6)
    assert look_up("milliseconds") == pytest.approx(25 * 1.5 * 4.6)
    assert look_up("seconds", batch_size=2) == pytest.approx(0.3 * 1.5 * 2.1)


def test_blocks_modules_and_memory() -> None:
    assert look_up("accepted block") == 42 / 6  # but for the first pass of each sentence
    assert look_up("module ms", label="gad++-3-1", modules=("drafter",)) == pytest.approx(75)
    assert look_up("module %", label="gad++-3-1", modules=("drafter", "rest")) == pytest.approx(80)
    assert look_up("module ms", label="gad++-3-1") == pytest.approx(125)  # all of them
    assert look_up("host MiB", label="gad++-3-1") == 2
    assert look_up("device MiB", label="gad++-3-1") is None


def test_bleu_of_timed_sentences() -> None:
    assert look_up("timed BLEU") == 33.0
    assert look_up("timed BLEU of all") == 33.0
    results = made_up_results()
    results.scores[0]["sentences"] = 40
    assert value(results, Source("timed BLEU of all", "gad", record="bench").filled()) is None, (
        "of the first four alone"
    )


def test_times_of_decoding_where_sentences_came_one_by_one() -> None:
    results = made_up_results()
    results.decodings.append(Decoding("test", "greedy", 40, 470, 470, 0, 0, seconds=15.0))
    results.decodings.append(Decoding("test", "batched", 40, 100, 470, 800, 370))
    one = Source(measure="decoding seconds", label="gad").filled()
    assert value(results, one) == 5.0
    assert value(results, Source(measure="decoding speed-up", label="gad", over="greedy").filled()) == 3.0
    assert value(results, Source(measure="decoding speed-up", label="batched", over="greedy").filled()) is None
