"""Rounds of the modes, and what a record keeps of them."""

import json
import time
from pathlib import Path

import pytest

from fairseq_aggdec import progress
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import by_edit_ratio, counted, load_record, run_of
from fairseq_aggdec.lab.bench.rounds import WARM_UP_BATCHES, ModeResult, Output, compare
from fairseq_aggdec.lab.bench.tables import identical_to_greedy
from fairseq_aggdec.lab.verify.differences import Difference
from tests.lab.bench.tiny import made_up_record, made_up_run


class Diarist:
    """Writes down when it decodes and waits."""

    def __init__(self, name: str, diary: list[str], batches: int = 4) -> None:
        self.mode = Mode.parse(name)
        self.batches = [[2 * number, 2 * number + 1] for number in range(batches)]
        self.diary = diary

    def decode(self, number: int) -> int:
        self.diary.append(f"{self.mode.name}{number}")
        return number

    def outputs(self, number: int, decoded: int) -> dict[int, Output]:
        assert decoded == number
        self.diary.append("outputs")
        return {sentence: Output([sentence]) for sentence in self.batches[number]}

    def wait(self) -> None:
        self.diary.append("wait")


def test_modes_take_turns_after_a_warm_up_and_only_decoding_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diary: list[str] = []
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: diary.append("clock") or real())  # type: ignore[func-returns-value]
    result, _ = compare([Diarist("iad", diary), Diarist("beam2", diary)], repeats=2)
    assert diary[-6:] == ["wait", "clock", "beam23", "wait", "clock", "outputs"], (
        "the device has finished"
    )
    decoded = [entry for entry in diary if entry[-1].isdecimal()]
    warm_up = [
        f"{mode}{number}"
        for mode in ("iad", "beam2")
        for number in range(WARM_UP_BATCHES)
    ]
    one_round = [f"{mode}{number}" for mode in ("iad", "beam2") for number in range(4)]
    assert decoded == [*warm_up, *one_round, *one_round]
    assert [len(latencies) for latencies in result.latencies] == [4, 4]
    assert {number: output.tokens for number, output in result.outputs.items()} == {
        n: [n] for n in range(8)
    }


def test_rounds_that_differ_by_more_than_two_are_said_and_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 0)
    monkeypatch.setattr(time, "perf_counter", iter([0, 1, 10, 13.5, 20, 21.5]).__next__)
    compare([Diarist("iad", [], batches=1)])
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.startswith(
        "rounds of iad differ by 3.5x: the machine was busy, or a round is too short to time"
    )
    assert "iad, batch size 2: 100%" in " ".join(lines)


def test_a_record_is_read_as_it_was_written_or_refused_with_the_number_of_the_run(
    tmp_path: Path,
) -> None:
    record = made_up_record(
        [made_up_run("beam5", 0.2), made_up_run("iad", 0.1, iterations=10)]
    )
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
    greedy, iad = (
        ModeResult(Mode.parse(name), [[1], [0, 2]]) for name in ("greedy", "iad")
    )
    iad.latencies = [[1.0, 2.0], [3.0, 5.0], [2.0, 2.5]]
    greedy.latencies = [[8.0, 5.0]]
    greedy.outputs = {number: Output([4, 5, 2]) for number in range(3)}
    iad.outputs = greedy.outputs | {1: Output([4, 2])}
    run = run_of(
        iad, "fp32", [Difference(1, 1, 5, 2, 0.0, near_tie=True)], greedy, "fp32"
    )
    assert (run.rounds, run.seconds, run.fastest, run.slowest) == (3, 4.5, 3.0, 8.0)
    # sentences wait for their whole batch: 2.5, 2 and 2.5 seconds
    assert run.percentiles["50"] == 2.5
    assert (run.sentences, run.tokens, run.batch_size) == (3, 8, 2)
    assert (run.identical, run.compared_with, run.near_ties, run.differing) == (
        2,
        "fp32",
        1,
        0,
    )
    assert iad.speed_ups_over(greedy) == [2.0, 4.0, 2.0]


def test_single_sentences_speed_ups_are_counted_and_grouped_by_edit_ratio() -> None:
    assert counted([0.7, 2.4, 2.0, 1.99]) == [0, 1, 0, 1, 2]
    assert by_edit_ratio([0.0] * 8 + [0.5] * 8, [4.0] * 8 + [2.0] * 8) == [
        [0.0, 4.0],
        [0.5, 2.0],
    ]


def test_identity_names_another_precision_and_near_ties() -> None:
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=3)) == "3 of 4"
    assert (
        identical_to_greedy(made_up_run("iad@bf16", 1.0, precision="bf16"))
        == "4 of 4 (fp32)"
    )
    assert (
        identical_to_greedy(made_up_run("iad", 1.0, identical=2, near_ties=2))
        == "2 of 4 (2 near-ties)"
    )
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=None)) == ""
