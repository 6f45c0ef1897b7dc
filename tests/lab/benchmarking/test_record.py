"""Tests of `fairseq_aggdec.lab.benchmarking.record`."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.record import load_record, run_of
from fairseq_aggdec.lab.benchmarking.results import ModeResult, Output
from tests.lab.benchmarking.tiny import made_up_record, made_up_run


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = made_up_record([made_up_run("beam5", 0.2), made_up_run("iad", 0.1, iterations=[1, 2, 3, 4])])
    record.save(tmp_path / "folder" / "out.json")
    assert load_record(tmp_path / "folder" / "out.json") == record


def test_a_sentence_waits_for_its_batch() -> None:
    run = made_up_run("iad", 1.0, 2, 4, latencies=[[1.0, 8.0], [3.0, 2.0], [2.0, 4.0]], batches=[[3, 0], [1, 2]])
    assert run.sentence_latencies == [2.0, 4.0, 4.0, 2.0]
    assert run.rounds == [9.0, 5.0, 6.0]
    assert run.seconds == 6.0
    assert run.percentile(50) == 3.0


def test_results_keep_counters_and_outputs() -> None:
    stats = SentenceStats(drafted=[3, 0], accepted=[2, 0], committed=[3, 1])
    result = ModeResult(Mode.parse("iad"), 1, [[1], [0]], [[0.12345678, 0.2]])
    result.outputs = {1: Output([5, 6, 7, 2], stats), 0: Output([5, 2], SentenceStats([0, 0], [0, 0], [1, 1]))}
    run = run_of(result, "bf16")
    assert (run.tokens, run.iterations, run.drafted, run.accepted) == ([2, 4], [2, 2], [0, 3], [0, 2])
    assert run.latencies == [[0.123457, 0.2]]
    assert run.precision == "bf16"
    assert run.mean_accepted_tokens == 6 / 4
    other = ModeResult(Mode.parse("beam1"), 1, [[0], [1]], [[1.0, 1.0]])
    other.outputs = {0: Output([5, 2]), 1: Output([5, 6, 8, 2])}
    stock = run_of(other, "fp32")
    assert stock.iterations is None
    assert stock.mean_iterations is None
    assert run.identical_to(stock) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [('{"runs": [], "format": 1}', "has format 1"), ('{"runs": [], "format": 2}', "missing or unknown entries")],
)
def test_other_files_are_refused_by_name(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(AggdecError, match=f"other.json: {reason}"):
        load_record(path)


@pytest.mark.parametrize("change", [{"latencies": [[1.0]]}, {"batches": [[0], [1], [2], [2]]}])
def test_runs_that_do_not_fit_are_refused_by_number(change: dict, tmp_path: Path) -> None:
    made_up_record([made_up_run("beam5", 0.1), made_up_run("iad", 0.1)]).save(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    content["runs"][1].update(change)
    (tmp_path / "out.json").write_text(json.dumps(content))
    with pytest.raises(AggdecError, match=r"run 2 \(iad\): times or counters do not fit 4 sentences"):
        load_record(tmp_path / "out.json")
