"""A fixed part of what `scripts/fuzz.sh` does without end, and that it finds, shrinks and repeats what is wrong."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from fairseq_aggdec.cli import fuzz
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.lossless.fuzzing import running
from fairseq_aggdec.lab.lossless.fuzzing.cases import ADVERSARIES, KINDS, Case, draw
from fairseq_aggdec.lab.lossless.fuzzing.checking import CaseResult, ModeResult
from fairseq_aggdec.lab.lossless.fuzzing.running import Run
from fairseq_aggdec.lab.lossless.fuzzing.shrinking import shrunk

CASES = range(3, 10)
"""those before them take as long as all of these"""


def test_random_cases_decode_as_stock_fairseq_does(tmp_path: Path) -> None:
    run, texts = Run(tmp_path / "run.json", CASES.start), list[str]()
    for _ in CASES:
        run.next(texts.append)
    assert texts == []
    assert run.state["cases"] >= len(CASES) - 1, "fairseq itself refuses few"
    known = [counters for mode, counters in run.state["modes"].items() if mode.endswith(("oracle", "junk behind EOS"))]
    assert sum(counters["accepted"] for counters in known) > 0, "drafts that are right pass"


def test_numbers_draw_every_kind_mode_adversary_and_number_of_heads() -> None:
    cases = [draw(number) for number in range(300)]
    models = [model for case in cases for model in case.models]
    modes = [mode for case in cases for mode in case.modes]
    assert {model["kind"] for model in models} == set(KINDS)
    assert {model.get("decoder_attention_heads") for model in models} >= {1, 2, 3, 4, 8, 12, 16}
    assert {mode["decoding"] for mode in modes} == {"greedy", "iad", "gad", "blockwise", "aggressive-beam"}
    assert {mode.get("drafts") for mode in modes} == {None, "oracle", *ADVERSARIES}
    assert {len(batch) for case in cases for batch in case.batches} >= {1, 2, 7, 16, 32, 256}
    assert draw(7) == draw(7)


def test_a_stopped_run_goes_on_as_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its cases say: here at once, by their numbers."""

    def result(case: Case) -> CaseResult:
        modes = [ModeResult(sentences=case.number, accepted=place) for place, _ in enumerate(case.modes)]
        return CaseResult(sentences=case.number, modes=modes)

    monkeypatch.setattr(running, "check", result)
    options = ["--first", "20", "--output"]
    fuzz.main(["--cases", "1", *options, str(tmp_path / "stopped.json")])
    assert fuzz.main(["--cases", "2", *options, str(tmp_path / "stopped.json")]) == 0
    assert fuzz.main(["--cases", "2", *options, str(tmp_path / "whole.json")]) == 0
    stopped, whole = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("stopped", "whole"))
    for state in (stopped, whole):
        del state["seconds"], state["began"]
    assert stopped == whole


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"next": 3}')
    with pytest.raises(AggdecError, match=r"other\.json: not the counters of a run; name another file"):
        Run(tmp_path / "other.json")


def test_what_is_wrong_is_found_and_repeated_by_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows in the wrong order, once one has left."""
    right = Outputs._keep

    def swapped(self: Any, staying: list[int]) -> Tensor:
        remaining = right(self, staying)
        self.texts.reverse()
        return remaining

    monkeypatch.setattr(running, "_SHRINKING", 0.0)
    search, batches = {"max_len_b": 20, "min_len": 10}, [[[1, 18], [2, 12], [3, 13]]]
    changes = json.dumps({"batches": batches, "search": search, "modes": [{"decoding": "greedy"}]})
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "_keep", swapped)
        assert fuzz.main(["--case", "4", "--changes", changes, "--shrink"]) == 1
        shown = capsys.readouterr().out
        assert "where fairseq has 'w" in shown
        words = shlex.split(next(line for line in shown.splitlines() if line.startswith("repeat: ")))
        assert words[1:3] == ["bash", "scripts/fuzz.sh"]
        assert fuzz.main(words[3:]) == 1
    assert fuzz.main(words[3:]) == 0


def test_a_case_is_made_as_small_as_it_still_fails() -> None:
    """In whatever has two sentences, of which one has two words, and a minimum length."""

    def fails(case: Case) -> bool:
        lengths = [length for batch in case.batches for _, length in batch]
        return len(lengths) >= 2 and max(lengths) >= 2 and "min_len" in case.search

    case = next(case for case in map(draw, range(100)) if fails(case) and len(case.models) == 2)
    smaller = shrunk(case, fails, seconds=10)
    assert sorted(length for batch in smaller.batches for _, length in batch) == [0, 2]
    assert smaller.search == {"min_len": case.search["min_len"], "max_len_b": smaller.search["max_len_b"]}
    assert smaller.search["max_len_b"] <= 1
    assert len(smaller.modes) == len(smaller.models) == 1
    assert smaller.models[0].keys() <= {"kind", "arch", "encoder_layers", "decoder_layers", "block_heads"}
