"""Runs many cases and keeps counters in a file, from which a stopped run continues."""

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking.machine import commit, machine, now
from fairseq_aggdec.lab.lossless.fuzzing.cases import Case, draw
from fairseq_aggdec.lab.lossless.fuzzing.checking import CaseResult, Checker, Finding
from fairseq_aggdec.lab.lossless.fuzzing.shrinking import shrunk
from fairseq_aggdec.structured_files import read_json

_SHRUNK = 10
"""number of counterexamples to shrink; a fault shows in many cases, so more are not needed"""
_SHRINKING = 60.0
"""seconds for shrinking one counterexample"""


@torch.no_grad()
def check(case: Case) -> CaseResult:
    """Compare each mode of a case with stock fairseq."""
    return Checker(case).check()


def shrink(case: Case, finding: Finding) -> Case:
    """A smaller case in which a mode has a finding of the same type.

    Args:
        case: a case with the finding.
        finding: a finding in one of its modes.
    """

    def fails(smaller: Case) -> bool:
        return any(found.what == finding.what for found in check(smaller).findings)

    return shrunk(case.changed(modes=[case.modes[finding.mode]]), fails, _SHRINKING)


def command(case: Case) -> str:
    """The command that repeats a case."""
    changes = case.changes()
    changed = f" --changes {shlex.quote(json.dumps(changes))}" if changes else ""
    return f"bash scripts/fuzz.sh --case {case.number}{changed}"


class Run:
    """Runs cases with consecutive numbers and counts the results."""

    def __init__(self, file: Path, first: int = 0) -> None:
        """
        Args:
            file: file of the counters; if it exists, its run continues.
            first: number of the first case of a new run.

        Raises:
            AggdecError: the file has another format.
        """
        self.file = file
        self.state: dict[str, Any] = {
            "machine": machine(), "began": now(), "commits": [], "first": first, "next": first, "cases": 0,
            "models": 0, "sentences": 0, "decodings": 0, "near_ties": 0, "seconds": 0.0,
            "refused": {}, "kinds": {}, "modes": {}, "precisions": {}, "heads": {}, "counterexamples": [],
        }  # fmt: skip
        if file.is_file():
            stored = read_json(file, "name another file")
            if not isinstance(stored, dict) or stored.keys() != self.state.keys():
                raise AggdecError(f"{file}: not the counters of a run; name another file")
            self.state = stored
        if commit() not in self.state["commits"]:
            self.state["commits"].append(commit())

    def next(self, report: Callable[[str], None]) -> None:
        """Check the next case.

        Args:
            report: called with the text of each counterexample.
        """
        began, state = time.monotonic(), self.state
        case = draw(state["next"])
        result = check(case)
        state["next"] += 1
        if result.refused:
            _add(state["refused"], result.refused[:100], cases=1)
        else:
            self._count(case, result)
        for number, finding in enumerate(result.findings):
            report(self._counterexample(case, finding, smaller=number == 0))
        state["seconds"] = round(state["seconds"] + time.monotonic() - began, 1)
        with written_whole(self.file) as partial:
            partial.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def summary(self) -> str:
        """The counters in one line."""
        state = self.state
        return (
            f"{state['cases']} cases, {state['models']} models, {state['sentences']} sentences decoded "
            f"{state['decodings']} times, {state['near_ties']} near-ties, "
            f"{len(state['counterexamples'])} counterexamples, {state['seconds'] / 60:.0f} minutes; next case "
            f"{state['next']}"
        )

    def _count(self, case: Case, result: CaseResult) -> None:
        state = self.state
        state["cases"] += 1
        state["models"] += len(case.models)
        state["sentences"] += result.sentences
        _add(state["kinds"], case.kind, cases=1, sentences=result.sentences)
        for model in case.models:
            _add(state["heads"], str(model.get("decoder_attention_heads", "none")), sentences=result.sentences)
        for mode, done in zip(case.modes, result.modes, strict=True):
            counters = asdict(done)
            state["near_ties"] += done.near_ties
            state["decodings"] += done.sentences
            drafts = f", {mode['drafts']}" if "drafts" in mode else ""
            _add(state["modes"], mode["decoding"] + drafts, **counters)
            exact = ", bit-exact" if mode.get("bit_exact") else ""
            _add(state["precisions"], mode.get("precision", "own") + exact, **counters)

    def _counterexample(self, case: Case, finding: Finding, smaller: bool) -> str:
        """Record a counterexample, with its mode alone, and return the text to print."""
        mode = case.modes[finding.mode]
        known = self.state["counterexamples"]
        case = case.changed(modes=[mode])
        if smaller and len(known) < _SHRUNK:
            case = shrink(case, replace(finding, mode=0))
        entry = {"kind": case.kind, "mode": mode, "what": finding.what, "text": finding.text, "repeat": command(case)}
        known.append(entry)
        return (
            f"case {case.number}, {case.kind}, {json.dumps(mode)}: {finding.what}\n{finding.text}\n"
            f"repeat: {entry['repeat']}"
        )


def _add(table: dict[str, dict[str, int]], name: str, **counts: int) -> None:
    row = table.setdefault(name, dict.fromkeys(counts, 0))
    for counter, count in counts.items():
        row[counter] += count
