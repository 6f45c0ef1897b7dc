"""A model of many languages, untrained: `aggdec verify` and `decode` with --task."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import PLUGIN, TINY_TRANSFORMER, generate_here, train_toy

TASK = "translation_multi_simple_epoch"
LANGUAGES = "--lang-pairs src-tgt --encoder-langtok src --decoder-langtok".split()


def test_verify_forces_what_the_task_forces(
    toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model drafts for itself: nearly all is accepted."""
    options = [*TINY_TRANSFORMER, "--task", TASK, *LANGUAGES, "--disable-validation"]
    model = train_toy(toy_data, tmp_path / "model", options, updates=50)
    checkpoint = str(model.checkpoint)
    common = ["verify", str(model.data), "--path", checkpoint]
    common += f"--task {TASK} -s src -t tgt --max-len-b 16".split()
    modes = ["--modes", "speculative+whole,aggressive-beam:3", "--drafter-path"]
    record = tmp_path / "verified.json"
    aggdec([*common, *modes, checkpoint, "--limit", "5", "--json", str(record)])
    assert capsys.readouterr().err.startswith("5 sentences, 2 modes, fp32, alone, in")
    checks = json.loads(record.read_text())["checks"]
    drafted = [check for check in checks if "whole" in check["mode"]]
    assert all(check["accepted"] > 0.8 * check["drafted"] > 0 for check in drafted)
    with pytest.raises(AggdecError, match=r"valid2.tgt-src.src: no such split"):
        aggdec([*common, "--gen-subset", "valid2"])
    paths = [model.data, "--path", checkpoint, "--user-dir", PLUGIN, "--cpu"]
    paths += ["--task", f"aggressive_{TASK}", "--decoding", "greedy", *LANGUAGES]
    pair = ["-s", "src", "-t", "tgt", "--gen-subset", "tset"]
    for given, message in (
        ([], "needs both for decoding"),
        (pair, "main:src-tgt.*: no such split"),
    ):
        with pytest.raises(AggdecError, match=message):
            generate_here(*paths, *given)
