"""Copies and a model's drafts through fairseq-generate, on a task that mostly copies."""

from pathlib import Path

import pytest

from tests.cli_integration.correction import (
    SENTENCES,
    Process,
    TrainedHeads,
    assert_same_hypotheses,
    generate_here,
)
from tests.helpers import ToyModel, parse_generate


@pytest.fixture(scope="module")
def outputs(correction_model: ToyModel, correction_drafter: Path, heads: TrainedHeads) -> tuple[str, str]:
    """Sentence by sentence: with a drafter, and with heads."""
    full = ["--print-step", "--retain-iter-history", "--batch-size", 1]
    with_drafter = generate_here(correction_model, "hybrid", *full, "--drafter-path", correction_drafter)
    return with_drafter, generate_here(correction_model, "hybrid", *full, path=heads.checkpoint)


def test_the_hypotheses_of_beam_one(outputs: tuple[str, str], beam_one: Process) -> None:
    for output in outputs:
        assert_same_hypotheses(output, beam_one.stdout)


def test_no_more_iterations_than_copying_alone(outputs: tuple[str, str], correction_model: ToyModel) -> None:
    iad = parse_generate(generate_here(correction_model, "iad", "--print-step", "--batch-size", 1))
    alone = sum(sentence.steps or 0 for sentence in iad.values())
    for output in outputs:
        sentences = parse_generate(output)
        assert len(sentences) == SENTENCES
        assert sum(sentence.steps or 0 for sentence in sentences.values()) < alone
        for sentence in sentences.values():
            assert sentence.steps == len(sentence.history)


@pytest.mark.parametrize(
    "options",
    [
        "--full-drafts",
        "--adaptive-draft --batch-size 7",
        "--block-size 1 --min-suffix 2 --max-suffix 3 --max-draft-len 4",
    ],
)
def test_what_equals_it(correction_model: ToyModel, correction_drafter: Path, beam_one: Process, options: str) -> None:
    drafter = ["--drafter-path", correction_drafter]
    assert_same_hypotheses(generate_here(correction_model, "hybrid", *drafter, *options.split()), beam_one.stdout)


def test_neither_drafter_nor_heads(correction_model: ToyModel, beam_one: Process) -> None:
    """Guesses alone save iterations, too."""
    steps = {}
    for decoding in ("iad", "hybrid"):
        options = ["--print-step", "--full-drafts", "--batch-size", 13]
        output = generate_here(correction_model, decoding, *options)
        assert_same_hypotheses(output, beam_one.stdout)
        steps[decoding] = sum(sentence.steps or 0 for sentence in parse_generate(output).values())
    assert steps["hybrid"] < steps["iad"]


@pytest.mark.parametrize("decoding", ["iad", "gad++", "blockwise"])
def test_adaptive_drafts_of_every_mode(
    correction_model: ToyModel,
    correction_drafter: Path,
    heads: TrainedHeads,
    beam_one: Process,
    decoding: str,
) -> None:
    options = ["--adaptive-draft", "--batch-size", 1]
    if decoding.startswith("gad"):
        options += ["--drafter-path", correction_drafter]
    if decoding == "gad++":
        options += ["--top-beta", 1]
    path = heads.checkpoint if decoding == "blockwise" else None
    assert_same_hypotheses(generate_here(correction_model, decoding, *options, path=path), beam_one.stdout)
