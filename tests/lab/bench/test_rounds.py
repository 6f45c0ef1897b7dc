"""Tests of `fairseq_aggdec.lab.bench.rounds`."""

import time

import pytest

from fairseq_aggdec import progress
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.rounds import WARM_UP_BATCHES, Output, compare


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


def test_modes_take_turns_after_a_warm_up_and_only_decoding_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    diary: list[str] = []
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: diary.append("clock") or real())  # type: ignore[func-returns-value]
    result, _ = compare([Diarist("iad", diary), Diarist("beam2", diary)], repeats=2)
    assert diary[-6:] == ["wait", "clock", "beam23", "wait", "clock", "outputs"], "the device has finished"
    decoded = [entry for entry in diary if entry[-1].isdecimal()]
    warm_up = [f"{mode}{number}" for mode in ("iad", "beam2") for number in range(WARM_UP_BATCHES)]
    one_round = [f"{mode}{number}" for mode in ("iad", "beam2") for number in range(4)]
    assert decoded == [*warm_up, *one_round, *one_round]
    assert [len(latencies) for latencies in result.latencies] == [4, 4]
    assert {number: output.tokens for number, output in result.outputs.items()} == {n: [n] for n in range(8)}


@pytest.mark.parametrize(
    ("second", "said"),
    [(3.5, "rounds of iad differ by 3.5x: the machine was busy, or a round is too short to time"), (2.0, "")],
)
def test_rounds_that_differ_by_more_than_two_are_said(
    second: float, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where stderr is a file, how far it is, from time to time."""
    monkeypatch.setattr(progress, "_SECONDS", 0)
    monkeypatch.setattr(time, "perf_counter", iter([0, 1, 10, 10 + second, 20, 21.5]).__next__)
    compare([Diarist("iad", [], batches=1)])
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.startswith(said)
    assert "iad, batch size 2: 100%" in " ".join([*lines, last])
