"""A model of many languages, untrained: `aggdec verify` and `decode` with --task."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import PLUGIN, TINY_TRANSFORMER, generate_here, train_toy

TASK = "translation_multi_simple_epoch"
LANGUAGES = "--lang-pairs src-tgt --encoder-langtok src --decoder-langtok".split()


def test_verify_forces_what_the_task_forces_and_drafts_by_models_and_files(
    toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model drafts for itself, and its own outputs are a file of drafts: nearly all is accepted."""
    options = [*TINY_TRANSFORMER, "--task", TASK, *LANGUAGES, "--disable-validation"]
    model = train_toy(toy_data, tmp_path / "model", options, updates=50)
    common = [
        str(model.data),
        "--path",
        str(model.checkpoint),
        *f"--task {TASK} -s src -t tgt --max-len-b 16".split(),
    ]
    files = ["--input", str(model.data / "test.src"), "--output", str(tmp_path / "out")]
    aggdec(["decode", *common, *files, "--decoding", "greedy"])
    [drafts] = (tmp_path / "out").glob("test.src.*.txt")
    greedy = load(
        model.checkpoint,
        model.data,
        source_lang="src",
        target_lang="tgt",
        task=TASK,
        device="cpu",
    )
    first, *_ = (model.data / "test.src").read_text().splitlines()
    assert (
        drafts.read_text().splitlines()[0]
        == greedy.decode(first, "greedy", max_len_b=16).text
    )

    out = tmp_path / "verified.json"
    modes = [
        "--modes",
        "iad+whole,speculative+whole,aggressive-beam:3",
        "--drafter-path",
        str(model.checkpoint),
    ]
    capsys.readouterr()
    aggdec(
        [
            "verify",
            *common,
            *modes,
            "--draft-file",
            str(drafts),
            "--limit",
            "5",
            "--thorough",
            "--json",
            str(out),
        ]
    )
    said, *_ = capsys.readouterr().err.splitlines()
    assert (
        said
        == "5 sentences, 3 modes, fp32, int8, exact, alone, in batches of 8, in batches of 32"
    )
    record = json.loads(out.read_text())
    assert record["passed"]
    assert {check["precision"] for check in record["checks"]} | {
        *record["left_out"]
    } == {"fp32", "int8", "exact"}
    checks = [
        check
        for check in record["checks"]
        if check["precision"] != "int8" and "whole" in check["mode"]
    ]
    assert {"fp32", "exact"} <= {check["precision"] for check in checks}
    assert all(check["accepted"] > 0.8 * check["drafted"] > 0 for check in checks)
    with pytest.raises(AggdecError, match=r"valid2.tgt-src.src: no such split"):
        aggdec(["verify", *common, "--gen-subset", "valid2"])
    paths = [
        model.data,
        "--path",
        model.checkpoint,
        "--user-dir",
        PLUGIN,
        "--cpu",
        "--task",
        f"aggressive_{TASK}",
    ]
    pair = ["-s", "src", "-t", "tgt", "--gen-subset", "tset"]
    for given, message in (
        ([], "needs both for decoding"),
        (pair, "main:src-tgt.*: no such split"),
    ):
        with pytest.raises(AggdecError, match=message):
            generate_here(*paths, "--decoding", "greedy", *LANGUAGES, *given)
