"""Outputs of an experiment as text; its tables are tested with aggdec score, tests/cli/test_score.py."""

from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.lab.evaluation import experiment_scores


def test_subwords_of_gpt2_become_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Path, ...]] = []

    class Encoder:
        def __init__(self, *files: Path) -> None:
            made.append(files)

        def decode(self, line: str) -> str:
            return " ".join(chr(96 + int(number)) for number in line.split())

    monkeypatch.setattr(experiment_scores.subwords, "gpt2", Encoder)
    config: dict[str, Any] = {"bpe": {"gpt2": {}}}
    assert experiment_scores.subword_joiner(config, tmp_path)("1 2") == "a b"
    assert made == [(tmp_path / "data-bin/encoder.json", tmp_path / "data-bin/vocab.bpe")]
    assert experiment_scores.subword_joiner({"bpe": {"symbols": 10}}, tmp_path)("a@@ b c") == "ab c"
    assert experiment_scores.subword_joiner({}, tmp_path)("a b") == "a b"
