"""--int8, fairseq's --bf16 and --bit-exact on fairseq-generate's command line."""

from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from tests.helpers import ToyModel, generate_here

ROOT = Path(__file__).resolve().parents[2]


def generate(model: ToyModel, *options: object) -> str:
    task = ["--user-dir", ROOT / "fairseq_aggdec", "--task", "aggressive_translation", "--max-len-b", 20, "--cpu"]
    return generate_here(model.data, *task, "--gen-subset", "valid", "--path", model.checkpoint, *options)


def hypotheses(output: str) -> list[str]:
    """H- and P- lines, in the sentences' order."""
    return sorted(line for line in output.splitlines() if line[:2] in ("H-", "P-"))


@pytest.mark.parametrize("options", [pytest.param("--int8", marks=pytest.mark.int8), "--bf16"])
def test_scores_are_the_same_in_every_mode_and_batch(toy_model_dir: ToyModel, options: str) -> None:
    alone = generate(toy_model_dir, "--decoding", "greedy", "--batch-size", 1, *options.split())
    together = generate(toy_model_dir, "--decoding", "aggressive", "--batch-size", 6, *options.split())
    assert hypotheses(alone)
    assert hypotheses(together) == hypotheses(alone)


def test_ensembles_are_not_bit_exact(toy_model_dir: ToyModel) -> None:
    both = f"{toy_model_dir.checkpoint}:{toy_model_dir.checkpoint}"
    with pytest.raises(AggdecError, match="--bit-exact takes one model, and --path names 2"):
        generate(toy_model_dir, "--decoding", "iad", "--bit-exact", "--path", both)
