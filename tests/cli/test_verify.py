"""Tests of `aggdec verify`; what it finds out is tested in `tests/lab/verify/test_verification.py`."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.models.sizes import SIZES
from tests.lab.bench.tiny import TINY
from tests.support.engine_faults import blocks_see_what_follows
from tests.support.helpers import ToyModel

MODES = "greedy iad speculative aggressive-beam:5 iad+whole speculative+whole".split()


def test_a_data_bin_and_a_checkpoint_are_enough(
    toy_model_dir: ToyModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drafter adds the modes for its kind."""
    out = tmp_path / "verified.json"
    checkpoint = toy_model_dir.checkpoint
    command = f"verify {toy_model_dir.data} --path {checkpoint} --drafter-path {checkpoint} --limit 9 --json {out}"
    aggdec(command.split())
    printed, said = capsys.readouterr()
    assert said.startswith("9 sentences, 6 modes, fp32, alone, in batches of 8\n")
    assert printed.startswith(
        f"test of {toy_model_dir.data} by {toy_model_dir.checkpoint}, 9 sentences, cpu\n"
    )
    assert printed.rstrip().endswith(
        "passed: no lossless mode differs from its reference"
    )
    record = json.loads(out.read_text())
    assert record["passed"]
    ways = {
        (check["mode"], check["precision"], check["batch_size"])
        for check in record["checks"]
    }
    assert ways == {(mode, "fp32", size) for mode in MODES for size in (1, 8)}
    assert "torch" in record["machine"]["versions"]


def test_a_fault_exits_with_1_after_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks_see_what_follows(monkeypatch)
    monkeypatch.setitem(SIZES, "base", TINY)
    out = tmp_path / "verified.json"
    options = f"--random-model base --limit 3 --length 8 --modes iad --precisions fp32 --batch-sizes 1 --json {out}"
    assert aggdec(["verify", *options.split()]) == 1
    record = json.loads(out.read_text())
    assert not record["passed"]
    ((line, *_),) = (check["lines"] for check in record["checks"])
    printed = capsys.readouterr().out
    assert line in printed
    assert "FAILED: iad in fp32" in printed
