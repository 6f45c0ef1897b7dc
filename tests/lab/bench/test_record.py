"""Rounds of the modes, and what a record keeps of them."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_aggdec import progress
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.record import (
    Counts,
    Times,
    by_edit_ratio,
    counted,
    load_record,
    run_of,
)
from fairseq_aggdec.lab.bench.rounds import ModeResult, Output, compare
from fairseq_aggdec.lab.bench.tables import markdown
from fairseq_aggdec.lab.verify.differences import Difference

GOLDEN = Path(__file__).with_name("golden.json")


WARM_UP = "iad0 iad1 iad2 beam20 beam21 beam22"
ROUND = "iad0 iad1 iad2 iad3 beam20 beam21 beam22 beam23"


class Diarist:
    """Writes down when it decodes and waits."""

    def __init__(self, name: str, diary: list[str], batches: int = 4) -> None:
        self.mode = ModeSpec.parse(name)
        self.batches = [[2 * index, 2 * index + 1] for index in range(batches)]
        self.diary = diary

    def decode(self, index: int) -> int:
        self.diary.append(f"{self.mode.name}{index}")
        return index

    def outputs(self, index: int, decoded: int) -> dict[int, Output]:
        assert decoded == index
        self.diary.append("outputs")
        return {sentence: Output([sentence]) for sentence in self.batches[index]}

    def wait(self) -> None:
        self.diary.append("wait")


def test_modes_take_turns_after_a_warm_up_and_only_decoding_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diary: list[str] = []
    real = time.perf_counter

    def clock() -> float:
        diary.append("clock")
        return real()

    monkeypatch.setattr(time, "perf_counter", clock)
    result, _ = compare([Diarist("iad", diary), Diarist("beam2", diary)], repeats=2)
    # the device has finished
    assert " ".join(diary).endswith("wait clock beam23 wait clock outputs")
    decoded = " ".join(entry for entry in diary if entry[-1].isdecimal())
    assert decoded == f"{WARM_UP} {ROUND} {ROUND}"
    assert [len(latencies) for latencies in result.latencies] == [4, 4]
    assert result.outputs == {sentence: Output([sentence]) for sentence in range(8)}


def test_rounds_that_differ_by_more_than_two_are_said_and_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 0)
    monkeypatch.setattr(time, "perf_counter", iter([0, 1, 10, 13.5, 20, 21.5]).__next__)
    compare([Diarist("iad", [], batches=1)])
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.startswith("rounds of iad differ by 3.5x: the machine was busy, or a")
    assert "iad, batch size 2: 100%" in " ".join(lines)


def test_a_record_is_written_as_it_was_and_has_these_tables(tmp_path: Path) -> None:
    record = load_record(GOLDEN)
    record.save(tmp_path / "folder" / "out.json")
    assert (tmp_path / "folder" / "out.json").read_bytes() == GOLDEN.read_bytes()
    tables = GOLDEN.with_suffix(".md").read_text("utf-8")
    assert markdown(record) == tables.rstrip("\n")


@pytest.mark.parametrize(
    "part, change, reason",
    [
        ("times", {"fastest": 3.0}, "2: beam1: times or counters that no measurement"),
        ("counts", {"words": 2}, "2, counts: unknown entries .words.; .*measure again"),
    ],
)
def test_a_damaged_record_is_refused_with_the_place_of_the_run(
    part: str, change: dict, reason: str, tmp_path: Path
) -> None:
    content = json.loads(GOLDEN.read_text("utf-8"))
    content["runs"][1][part].update(change)
    (tmp_path / "out.json").write_text(json.dumps(content))
    with pytest.raises(AggdecError, match=f"out.json, runs, {reason}"):
        load_record(tmp_path / "out.json")


def test_times_are_medians_of_rounds_and_outputs_are_counted() -> None:
    batches = [[1], [0, 2]]
    greedy = ModeResult(SimpleNamespace(mode=ModeSpec.parse("greedy"), batches=batches))
    iad = ModeResult(SimpleNamespace(mode=ModeSpec.parse("iad@bf16"), batches=batches))
    iad.latencies = [
        [1.0, 2.0],
        [3.0, 5.0],
        [2.0, 2.5],
    ]
    greedy.latencies = [[8.0, 5.0]]
    greedy.outputs = {sentence: Output([4, 5, 2]) for sentence in range(3)}
    iad.outputs = greedy.outputs | {1: Output([4, 2])}
    iad.differences = [Difference(1, 1, 5, 2, 0.0, near_tie=True)]
    run = run_of(iad, greedy)
    assert run.batch_size == 2
    # sentences wait for their whole batch: 2.5, 2 and 2.5 seconds
    percentiles = {"50": 2.5, "95": 2.5, "99": 2.5}
    assert run.times == Times(
        rounds=3,
        seconds=4.5,
        fastest=3,
        slowest=8,
        percentiles=percentiles,
    )
    assert run.counts == Counts(
        sentences=3,
        tokens=8,
        identical=2,
        compared_with="fp32",
        near_ties=1,
        differing=0,
    )
    assert iad.speed_ups_over(greedy) == [2.0, 4.0, 2.0]


def test_single_sentences_speed_ups_are_counted_and_grouped_by_edit_ratio() -> None:
    assert counted([0.7, 2.4, 2.0, 1.99]) == [0, 1, 0, 1, 2]
    ratios = [0.0] * 8 + [0.5] * 8
    speed_ups = [4.0] * 8 + [2.0] * 8
    assert by_edit_ratio(ratios, speed_ups) == [[0.0, 4.0], [0.5, 2.0]]
