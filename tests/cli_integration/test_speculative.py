"""An earlier state of a model drafts for it, token by token, through fairseq-generate."""

import re
from pathlib import Path

import pytest

from tests.cli_integration.correction import (
    EARLIER,
    SENTENCES,
    WITHOUT_LONG,
    Process,
    assert_same_hypotheses,
    assert_same_lists,
    generate,
    generate_here,
    summaries,
)
from tests.helpers import ToyModel


@pytest.fixture(scope="module")
def small(correction_model: ToyModel) -> Path:
    """As large as its verifier: --drafts auto would find that drafts do not pay."""
    [found] = correction_model.checkpoint.parent.glob(EARLIER)
    return found


def test_the_hypotheses_are_those_of_beam_one(correction_model: ToyModel, small: Path, beam_one: Process) -> None:
    """One by one and in batches of 16; --decoding aggressive sees what kind of drafter it is."""
    by_one = generate(correction_model, "aggressive", "--drafter-path", small, "--drafts", "whole", "--batch-size", 1)
    assert_same_hypotheses(by_one.stdout, beam_one.stdout)
    log = by_one.stdout + by_one.stderr
    [summary] = summaries(log)
    assert "--decoding speculative: " in log
    assert "drafts of at most 4 tokens by a model" in log
    assert re.search(r"--drafter-path \S+: 0\.\d million weights; the verifier: 0\.\d", log)
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > 1.5
    options = ["--drafter-path", small, "--drafts", "whole", "--block-size", 2, "--batch-size", 16]
    assert_same_hypotheses(generate_here(correction_model, "speculative", *options), beam_one.stdout)


def test_a_beam_search(correction_model: ToyModel, small: Path) -> None:
    options = ["--beam", 5, "--nbest", 5, *WITHOUT_LONG]
    found = generate_here(correction_model, "aggressive-beam", *options, "--drafter-path", small)
    assert_same_lists(found, generate_here(correction_model, None, *options), 5)
