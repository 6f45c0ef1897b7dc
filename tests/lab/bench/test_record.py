"""Files of records, what is counted of a result, and columns of tables that test_measure.py does not see."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import by_edit_ratio, counted, load_record, run_of
from fairseq_aggdec.lab.bench.rounds import ModeResult, Output
from fairseq_aggdec.lab.bench.tables import identical_to_greedy
from fairseq_aggdec.lab.verify.differences import Difference
from tests.lab.bench.tiny import made_up_record, made_up_run


def test_a_record_is_read_as_it_was_written_or_refused_with_the_number_of_the_run(tmp_path: Path) -> None:
    record = made_up_record([made_up_run("beam5", 0.2), made_up_run("iad", 0.1, iterations=10)])
    path = tmp_path / "folder" / "out.json"
    record.save(path)
    assert load_record(path) == record
    written = path.read_text()
    assert sum('"mode": ' in line for line in written.splitlines()) == 2
    for change, reason in (
        ({"fastest": 3.0}, "runs, 2: iad: times or counters that no measurement has"),
        ({"latencies": []}, "runs, 2: unknown entries .latencies.; .*; measure again"),
    ):
        content = json.loads(written)
        content["runs"][1].update(change)
        path.write_text(json.dumps(content))
        with pytest.raises(AggdecError, match=f"out.json, {reason}"):
            load_record(path)


def test_times_are_medians_of_rounds_and_outputs_are_counted() -> None:
    greedy, iad = (ModeResult(Mode.parse(name), [[1], [0, 2]]) for name in ("greedy", "iad"))
    iad.latencies = [[1.0, 2.0], [3.0, 5.0], [2.0, 2.5]]
    greedy.latencies = [[8.0, 5.0]]
    greedy.outputs = {number: Output([4, 5, 2]) for number in range(3)}
    iad.outputs = greedy.outputs | {1: Output([4, 2])}
    run = run_of(iad, "fp32", [Difference(1, 1, 5, 2, 0.0, near_tie=True)], greedy, "fp32")
    assert (run.rounds, run.seconds, run.fastest, run.slowest) == (3, 4.5, 3.0, 8.0)
    assert run.percentiles["50"] == 2.5  # sentences wait for their whole batch: 2.5, 2 and 2.5 seconds
    assert (run.sentences, run.tokens, run.batch_size) == (3, 8, 2)
    assert (run.identical, run.compared_with, run.near_ties, run.differing) == (2, "fp32", 1, 0)
    assert iad.speed_ups_over(greedy) == [2.0, 4.0, 2.0]


def test_single_sentences_speed_ups_are_counted_and_grouped_by_edit_ratio() -> None:
    assert counted([0.7, 2.4, 2.0, 1.99]) == [0, 1, 0, 1, 2]
    assert by_edit_ratio([0.0] * 8 + [0.5] * 8, [4.0] * 8 + [2.0] * 8) == [[0.0, 4.0], [0.5, 2.0]]


def test_identity_names_another_precision_and_near_ties() -> None:
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=3)) == "3 of 4"
    assert identical_to_greedy(made_up_run("iad@bf16", 1.0, precision="bf16")) == "4 of 4 (fp32)"
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=2, near_ties=2)) == "2 of 4 (2 near-ties)"
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=None)) == ""
