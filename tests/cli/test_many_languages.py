"""A model of many languages, untrained: `aggdec verify` and `decode` with --task."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from tests.support.helpers import (
    PLUGIN,
    TINY_TRANSFORMER,
    generate_here,
    refused_with,
    train_toy,
)

TASK = "translation_multi_simple_epoch"
LANGUAGES = "--lang-pairs src-tgt --encoder-langtok src --decoder-langtok"


def test_verify_forces_what_the_task_forces(
    toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model drafts for itself: nearly all is accepted."""
    task = f"--task {TASK} {LANGUAGES} --disable-validation"
    options = [*TINY_TRANSFORMER, *task.split()]
    model = train_toy(toy_data, tmp_path / "model", options, updates=50)
    checkpoint = model.checkpoint
    common = f"verify {model.data} --path {checkpoint} --task {TASK} -s src -t tgt --max-len-b 16"
    modes = f"--modes speculative+whole,aggressive-beam:3 --drafter-path {checkpoint}"
    record = tmp_path / "verified.json"
    aggdec(f"{common} {modes} --limit 5 --json {record}".split())
    assert capsys.readouterr().err.startswith("5 sentences, 2 modes, fp32, alone, in")
    checks = json.loads(record.read_text())["checks"]
    drafted = [check for check in checks if "whole" in check["mode"]]
    assert all(check["accepted"] > 0.8 * check["drafted"] > 0 for check in drafted)
    with refused_with(r"valid2.tgt-src.src: no such split"):
        aggdec(f"{common} --gen-subset valid2".split())
    greedy = f"{model.data} --path {checkpoint} --user-dir {PLUGIN} --cpu --task aggressive_{TASK} --decoding greedy"
    for given, message in (
        ("", "needs both for decoding"),
        ("-s src -t tgt --gen-subset tset", "main:src-tgt.*: no such split"),
    ):
        with refused_with(message):
            generate_here(*f"{greedy} {LANGUAGES} {given}".split())
