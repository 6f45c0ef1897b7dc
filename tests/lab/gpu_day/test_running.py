"""Parts are run step by step: what fails stops nothing, what is done stays done, what is stopped is taken up again."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.lab.benchmarking import machine
from fairseq_aggdec.lab.gpu_day import running
from fairseq_aggdec.lab.gpu_day.running import RESULT, Part, Step


def python(name: str, program: str, *arguments: str, **settings: Any) -> Step:
    return Step(name, [sys.executable, "-c", f"import sys, time, pathlib\n{program}", *arguments], **settings)


def states(record: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["state"] for step in record["steps"]}


def test_a_failure_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    counting = "file = pathlib.Path(sys.argv[1]); file.write_text((file.read_text() if file.exists() else '') + 'x')"
    calls = tmp_path / "calls"
    parts = [
        Part("first", "One", [python("bad", "sys.exit('no such thing')"), Step("absent", ["no-such-program"])]),
        Part("second", "Two", [python("good", f"{counting}\nprint(file.name)", str(calls))]),
        Part("third", "Three", [python("measured", "pathlib.Path(sys.argv[1]).write_text('[1, 2]')", RESULT)]),
    ]
    records = running.run(parts, tmp_path / "results", tmp_path / "out", 60)
    assert [states(record) for record in records] == [
        {"bad": "failed", "absent": "failed"}, {"good": "done"}, {"measured": "done"},
    ]  # fmt: skip
    assert records[0]["steps"][0]["output"] == ["no such thing"]
    assert records[0]["steps"][1]["output"] == ["no-such-program: No such file or directory"]
    assert records[1]["steps"][0]["output"] == ["calls"]
    assert records[2]["steps"][0]["result"] == [1, 2]
    assert not any(record["left"] for record in records)
    assert json.loads((tmp_path / "out/third.json").read_text())["steps"] == records[2]["steps"]
    again = running.run(parts, tmp_path / "results", None, 60)
    assert [record["steps"] for record in again] == [record["steps"] for record in records]
    assert calls.read_text() == "x"
    mended = [Part("first", "One", [python("bad", ""), parts[0].steps[1]])]
    (record,) = running.run(mended, tmp_path / "results", None, 60, again=True)
    assert states(record) == {"bad": "done", "absent": "failed"}


def test_time_runs_out_and_the_next_call_goes_on(tmp_path: Path) -> None:
    """What a stopped step had started is stopped with it."""
    alive = tmp_path / "alive"
    loops = "import subprocess; subprocess.run(['bash', '-c', f'while true; do touch {sys.argv[1]}; sleep 0.05; done'])"
    part = Part(
        "slow",
        "Slow",
        [
            python("endless", loops, str(alive), seconds=3, resumable=True),
            python("short", "", seconds=3),
        ],
    )
    (record,) = running.run([part], tmp_path, None, 3)
    assert states(record) == {"endless": "stopped"}
    assert record["left"] == ["endless", "short"]
    assert record["steps"][0]["output"] == ["stopped after 3 seconds"]
    assert alive.exists()
    alive.unlink()
    time.sleep(0.2)
    assert not alive.exists()
    now = Part("slow", "Slow", [python("endless", "", seconds=3, resumable=True), part.steps[1]])
    (record,) = running.run([now], tmp_path, None, 60)
    assert states(record) == {"endless": "done", "short": "done"}


def test_a_step_waits_for_those_that_it_needs(tmp_path: Path) -> None:
    steps = [
        python("first", "time.sleep(0.6)", seconds=1),  # then too little is left for the long one
        python("long", "", seconds=100),
        python("needing", "", seconds=0, after=("first", "long")),
        python("bad", "sys.exit(1)", seconds=0),
        python("needing-bad", "", seconds=0, after=("bad",)),
    ]
    (record,) = running.run([Part("some", "Some", steps)], tmp_path, None, 5)
    assert states(record) == {"first": "done", "bad": "failed"}
    assert record["left"] == ["long", "needing", "needing-bad"]
    (record,) = running.run([Part("some", "Some", steps)], tmp_path, None, 60)
    assert states(record) == {"first": "done", "long": "done", "needing": "done", "bad": "failed"}
    assert record["left"] == ["needing-bad"]


def test_what_was_measured_keeps_its_machine_and_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [python("old", ""), python("new", "")]
    for name, known in (("a", steps[:1]), ("b", steps)):
        monkeypatch.setattr(machine, "commit", lambda name=name: name)
        monkeypatch.setattr(machine, "machine", lambda name=name: {"gpu": f"GPU {name}"})
        (record,) = running.run([Part("some", "Some", known)], tmp_path, None, 60)
    assert [(step["commit"], step["machine"]["gpu"]) for step in record["steps"]] == [("a", "GPU a"), ("b", "GPU b")]


def test_what_had_the_time_that_it_needs_is_not_tried_for_ever(tmp_path: Path) -> None:
    for needed, state in ((0, "failed"), (1000, "stopped")):
        part = Part("slow", "Slow", [python("endless", "time.sleep(60)", seconds=needed)])
        (record,) = running.run([part], tmp_path / state, None, 0.5)
        assert states(record) == {"endless": state}
