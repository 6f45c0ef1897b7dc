"""Tests of `fairseq_aggdec.lab.bench.rounds`."""

import time

import pytest

from fairseq_aggdec import progress
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.rounds import WARM_UP_BATCHES, Output, compare


class Sleeper:
    """Sleeps a little in `decode` and much where the clock must not look."""

    def __init__(self, name: str, diary: list[str], batches: int = 4) -> None:
        self.mode = Mode.parse(name)
        self.batches = [[2 * number, 2 * number + 1] for number in range(batches)]
        self.diary = diary

    def decode(self, number: int) -> int:
        self.diary.append(f"{self.mode.name}{number}")
        time.sleep(0.01)
        return number

    def outputs(self, number: int, decoded: int) -> dict[int, Output]:
        assert decoded == number
        time.sleep(0.05)
        return {sentence: Output([sentence]) for sentence in self.batches[number]}

    def wait(self) -> None:
        self.diary.append("wait")


def test_modes_take_turns_after_a_warm_up() -> None:
    diary: list[str] = []
    compare([Sleeper("iad", diary), Sleeper("beam2", diary)], repeats=2)
    assert diary[-3:] == ["wait", "beam23", "wait"], "the clock is read when the device has finished"
    decoded = [entry for entry in diary if entry != "wait"]
    warm_up = [f"{mode}{number}" for mode in ("iad", "beam2") for number in range(WARM_UP_BATCHES)]
    one_round = [f"{mode}{number}" for mode in ("iad", "beam2") for number in range(4)]
    assert decoded == [*warm_up, *one_round, *one_round]


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
    compare([Sleeper("iad", [], batches=1)])
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.startswith(said)
    assert "iad, batch size 2: 100%" in " ".join([*lines, last])


def test_only_decoding_is_timed_and_every_sentence_has_its_output() -> None:
    (result,) = compare([Sleeper("iad", [])], repeats=3)
    assert [len(latencies) for latencies in result.latencies] == [4, 4, 4]
    assert all(time >= 0.01 for latencies in result.latencies for time in latencies)
    assert min(min(latencies) for latencies in result.latencies) < 0.05
    assert result.rounds == [sum(latencies) for latencies in result.latencies]
    assert sorted(result.rounds)[1] == result.seconds
    assert {number: output.tokens for number, output in result.outputs.items()} == {n: [n] for n in range(8)}
