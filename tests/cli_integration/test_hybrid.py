"""Copies and a model's drafts through fairseq-generate, on a task that mostly copies."""

from pathlib import Path

from tests.cli_integration.correction import (
    SENTENCES,
    Process,
    TrainedHeads,
    assert_same_hypotheses,
    generate,
    generate_here,
)
from tests.helpers import ToyModel, parse_generate


def steps(output: str) -> int:
    """Iterations of all sentences."""
    sentences = parse_generate(output)
    assert len(sentences) == SENTENCES
    return sum(sentence.steps or 0 for sentence in sentences.values())


def test_the_hypotheses_of_beam_one_in_fewer_iterations_than_by_copying_alone(
    correction_model: ToyModel, correction_drafter: Path, heads: TrainedHeads, beam_one: Process
) -> None:
    """Sentence by sentence with a drafter, with heads, and with neither, as guesses alone save iterations, too."""
    full = ["--print-step", "--full-drafts", "--batch-size", 1]
    iad = generate_here(correction_model, "iad", *full)
    with_drafter = generate(correction_model, "hybrid", *full, "--drafter-path", correction_drafter).stdout
    with_heads = generate_here(correction_model, "hybrid", *full, path=heads.checkpoint)
    with_neither = generate_here(correction_model, "hybrid", *full)
    for output in (with_drafter, with_heads, with_neither):
        assert_same_hypotheses(output, beam_one.stdout)
        assert steps(output) < steps(iad)


def test_adaptive_drafts_of_a_batch_with_limits(
    correction_model: ToyModel, correction_drafter: Path, beam_one: Process
) -> None:
    options = "--adaptive-draft --batch-size 7 --block-size 1 --min-suffix 2 --max-suffix 3 --max-draft-len 4".split()
    output = generate_here(correction_model, "hybrid", "--drafter-path", correction_drafter, *options)
    assert_same_hypotheses(output, beam_one.stdout)
