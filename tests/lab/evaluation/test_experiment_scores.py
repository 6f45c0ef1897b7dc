"""Outputs of an experiment as text; its tables are tested with aggdec score, tests/cli/test_score.py."""

from pathlib import Path

import pytest

from fairseq_aggdec.data.experiment import Experiment
from fairseq_aggdec.lab.evaluation import experiment_scores
from fairseq_aggdec.lab.evaluation.experiment_scores import ExperimentScores


def test_subwords_of_gpt2_become_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Path, ...]] = []

    class Encoder:
        def __init__(self, *files: Path) -> None:
            made.append(files)

        def decode(self, line: str) -> str:
            return " ".join(chr(96 + int(number)) for number in line.split())

    monkeypatch.setattr(experiment_scores.subwords, "gpt2", Encoder)
    config = Experiment(("src", "tgt"), gpt2=True)
    assert ExperimentScores(config, tmp_path, tmp_path)._join("1 2") == "a b"
    assert made == [(tmp_path / "data-bin/encoder.json", tmp_path / "data-bin/vocab.bpe")]
    assert ExperimentScores(Experiment(("src", "tgt")), tmp_path, tmp_path)._join("a@@ b c") == "ab c"
