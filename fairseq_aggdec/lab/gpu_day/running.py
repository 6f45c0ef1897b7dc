"""Runs the steps of parts within a time limit. Finished steps are recorded; the next call continues with the others."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.files import alone_at, written_whole
from fairseq_aggdec.lab.benchmarking import machine
from fairseq_aggdec.structured_files import read_json

RESULT = "{result}"
"""placeholder in a step's command for the JSON file that it writes"""
_TAIL = 40  # lines of a step's output that are kept
_GRACE = 10  # seconds that a stopped step has to end by itself


@dataclass(frozen=True)
class Step:
    """One command of a part."""

    name: str
    command: Sequence[str]
    seconds: int = 150
    """longest time it should take; it is not started if the call has less time left"""
    environment: Mapping[str, str] = field(default_factory=dict)
    resumable: bool = False
    """whether a stopped step continues where it was; others start again"""
    after: Sequence[str] = ()
    """names of steps of the same part that must be done before"""


@dataclass(frozen=True)
class Part:
    """Steps that belong together; a step that failed holds up only those that name it in `after`."""

    name: str
    title: str
    steps: Sequence[Step]


def run(
    parts: Sequence[Part], results: Path, out: Path | None, seconds: float, again: bool = False
) -> list[dict[str, Any]]:
    """Run the steps of some parts that are not done yet.

    Args:
        parts: the parts, run in this order.
        results: folder of the records PART.json and of the steps' complete output; steps recorded as done are skipped.
        out: a further folder, which gets PART.json of each part in which a step ran; or None.
        seconds: time limit of this call.
        again: whether to run failed steps again.

    Returns:
        the records of the parts.

    Raises:
        AggdecError: another call runs one of the parts, or a record is damaged.
    """
    deadline = time.monotonic() + seconds
    records, facts = [], machine.machine()
    results.mkdir(parents=True, exist_ok=True)
    for part in parts:
        lock = results / f"{part.name}.lock"  # not of the folder: other calls may run other parts
        lock.touch()
        with alone_at(lock):
            records.append(_run_part(part, results, out, deadline, seconds, again, facts))
    return records


def _run_part(
    part: Part, results: Path, out: Path | None, deadline: float, seconds: float, again: bool, facts: dict[str, Any]
) -> dict[str, Any]:
    record = load(results, part.name) or {"part": part.name, "steps": []}
    states = {step["name"]: step for step in record["steps"]}
    for step in part.steps:
        left = deadline - time.monotonic()
        if _state(states, step.name) in (("done",) if again else ("done", "failed")):
            continue
        if left < min(step.seconds, 0.9 * seconds):
            continue
        if any(_state(states, name) != "done" for name in step.after):
            continue
        print(f"== {part.name}: {step.name}", file=sys.stderr, flush=True)
        found = _run(step, results / f"{part.name}.{step.name}", left)
        where = {"machine": facts, "commit": machine.commit(), "date": machine.now()}
        states[step.name] = found | where
        steps = [states[other.name] for other in part.steps if other.name in states]
        record |= {"title": part.title, "steps": steps}
        _write(record, results)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            shutil.copy(_file(results, part.name), out)
    record["left"] = [step.name for step in part.steps if _state(states, step.name) in ("left", "stopped")]
    return record


def load(results: Path, part: str) -> dict[str, Any] | None:
    """The record of a part; None if no step has run.

    Raises:
        AggdecError: the file is damaged.
    """
    path = _file(results, part)
    return read_json(path, "remove it, and the part is run again") if path.is_file() else None


def _state(states: Mapping[str, Mapping[str, Any]], name: str) -> str:
    return str(states[name]["state"]) if name in states else "left"


def _file(results: Path, part: str) -> Path:
    return results / f"{part}.json"


def _write(record: Mapping[str, Any], results: Path) -> None:
    with written_whole(_file(results, record["part"])) as partial:
        partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _run(step: Step, stem: Path, limit: float) -> dict[str, Any]:
    """Run one step. Its output goes to STEM.log, and its last lines into the record."""
    result, log = stem.with_name(stem.name + ".result.json"), stem.with_name(stem.name + ".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    command = [shown(result, Path.cwd()) if word == RESULT else word for word in step.command]
    begun = time.monotonic()
    with log.open("ab") as output:
        first = output.tell()
        code = _call(command, {**os.environ, "TQDM_DISABLE": "1", **step.environment}, output, limit)
    with log.open("rb") as written:
        written.seek(first)
        tail = written.read().decode(errors="replace").splitlines()[-_TAIL:]
    if code is None:
        # a step that had its full time and cannot be resumed would be stopped again
        state = "stopped" if step.resumable or limit < step.seconds else "failed"
        tail.append(f"stopped after {limit:.0f} seconds")
    else:
        state = "done" if code == 0 else "failed"
    found: dict[str, Any] = {
        "name": step.name,
        "command": " ".join([*(f"{name}={value}" for name, value in step.environment.items()), *step.command]),
        "state": state,
        "seconds": round(time.monotonic() - begun, 1),
        "output": tail,
    }
    with suppress(OSError, ValueError):
        found["result"] = json.loads(result.read_text(encoding="utf-8"))
    return found


def shown(path: Path, folder: Path) -> str:
    """A path for a command that runs in `folder`: relative if it lies in there, since records keep the command."""
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _call(command: Sequence[str], environment: Mapping[str, str], output: Any, limit: float) -> int | None:
    """Run a command and return its exit code; None if time ran out, when it and all its children were stopped."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    except OSError as error:
        output.write(f"{command[0]}: {error.strerror}\n".encode())
        return 127
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:  # also after Ctrl-C, nothing is left running
        for how in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, how)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
