"""A model of many languages, untrained: `aggdec verify` and `decode` with --task, and what is refused by name."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import PLUGIN, TINY_TRANSFORMER, ToyModel, generate_here, train_toy

TASK = "translation_multi_simple_epoch"
PAIR = ["-s", "src", "-t", "tgt"]
TOKENS = ["--encoder-langtok", "src", "--decoder-langtok"]
PAIRS = ["--lang-pairs", "src-tgt"]


@pytest.fixture(scope="module")
def model(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ToyModel:
    options = [*TINY_TRANSFORMER, "--task", TASK, *PAIRS, *TOKENS, "--disable-validation"]
    return train_toy(toy_data, tmp_path_factory.mktemp("many"), options, updates=50)


def test_verify_forces_what_the_task_forces_and_drafts_by_models_and_files(model: ToyModel, tmp_path: Path) -> None:
    """The model drafts for itself, and its own outputs are a file of drafts: nearly all is accepted."""
    paths = [str(model.data), "--path", str(model.checkpoint), "--task", TASK, *PAIR]
    lines = tmp_path / "lines"
    lines.write_text((model.data / "test.src").read_text(encoding="utf-8"), encoding="utf-8")
    aggdec(
        [
            "decode",
            *paths,
            "--input",
            str(lines),
            "--output",
            str(tmp_path / "out"),
            "--decoding",
            "greedy",
            "--max-len-b",
            "16",
        ]
    )
    [drafts] = (tmp_path / "out").glob("lines.*.txt")
    greedy = load(model.checkpoint, model.data, source_lang="src", target_lang="tgt", task=TASK, device="cpu")
    first, *_ = lines.read_text().splitlines()
    assert drafts.read_text().splitlines()[0] == greedy.decode(first, "greedy", max_len_b=16).text

    out = tmp_path / "verified.json"
    modes = ["--modes", "iad+whole,speculative+whole,aggressive-beam:3", "--drafter-path", str(model.checkpoint)]
    options = ["--draft-file", str(drafts), "--max-len-b", "16", "--limit", "5", "--thorough", "--json", str(out)]
    aggdec(["verify", *paths, *modes, *options])
    record = json.loads(out.read_text())
    checks = [check for check in record["checks"] if check["mode"] in ("iad+whole", "speculative+whole")]
    assert record["passed"]
    assert {"fp32", "exact"} <= {check["precision"] for check in checks}
    for check in checks:
        if check["precision"] in ("fp32", "exact"):
            assert check["accepted"] > 0.8 * check["drafted"] > 0, check
    with pytest.raises(AggdecError, match="has 60 lines, and the split 15 sentences"):
        aggdec(["verify", *paths, "--gen-subset", "valid", "--draft-file", str(drafts)])
    with pytest.raises(AggdecError, match=r"valid2.tgt-src.src: no such split"):
        aggdec(["verify", *paths, "--gen-subset", "valid2"])


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (TASK, [*PAIR, *TOKENS], "--lang-pairs is required"),
        (TASK, [*PAIRS, *TOKENS], "needs both for decoding"),
        (TASK, [*PAIRS, *TOKENS, "-s", "src", "-t", "de"], "pair src-de .*: check --langs"),
        (TASK, [*PAIRS, *TOKENS, *PAIR, "--gen-subset", "tset"], "main:src-tgt.*: no such split"),
        ("translation_from_pretrained_bart", PAIR, "check --langs"),
        ("multilingual_translation", [*PAIRS, "-s", "src", "-t", "de"], "'de': check --langs"),
    ],
)
def test_languages_that_do_not_fit_are_named(model: ToyModel, task: str, options: list[str], message: str) -> None:
    paths = [model.data, "--path", model.checkpoint, "--user-dir", PLUGIN, "--cpu", "--task", f"aggressive_{task}"]
    with pytest.raises(AggdecError, match=message):
        generate_here(*paths, "--decoding", "iad", *options)
