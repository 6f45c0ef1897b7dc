"""GAD, GAD++ and the drafter alone through fairseq's commands, with a drafter that was trained for the verifier.

And speculative decoding, with an earlier state of the verifier.
"""

import re
from pathlib import Path

import pytest

from fairseq_aggdec.lab.trace import read_traces
from tests.cli.correction import (
    BLOCK_SIZE,
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
from tests.support.helpers import ToyModel, parse_generate


def test_gad_gives_the_hypotheses_of_beam_one_and_tells_of_each_step(
    correction_model: ToyModel, correction_drafter: Path, beam_one: Process, tmp_path: Path
) -> None:
    """By a drafter that has learned: otherwise the tests here would say little."""
    stats = tmp_path / "stats.jsonl"
    options = ["--print-step", "--retain-iter-history", "--decoding-stats", stats, "--batch-size", 1]
    run = generate(correction_model, "gad", "--drafter-path", correction_drafter, *options)
    assert_same_hypotheses(run.stdout, beam_one.stdout)
    [summary] = summaries(run.stdout + run.stderr)
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > 1.3
    sentences = parse_generate(run.stdout)
    traces = {trace.number: trace for trace in read_traces(stats)}
    assert traces.keys() == sentences.keys()
    for number, sentence in sentences.items():
        drafts = [draft.split() for draft in sentence.history]
        assert sentence.steps == len(drafts)
        assert max(map(len, drafts)) <= BLOCK_SIZE
        assert traces[number].output == [*sentence.tokens, "</s>"]
        assert traces[number].source == sentence.source.split()


@pytest.mark.parametrize(
    ("decoding", "options"),
    [("aggressive", "--block-size 3 --drafts whole"), ("gad++", "--top-beta 1 --tolerance 9")],
)
def test_what_equals_gad(
    correction_model: ToyModel, correction_drafter: Path, beam_one: Process, decoding: str, options: str
) -> None:
    output = generate_here(correction_model, decoding, "--drafter-path", correction_drafter, *options.split())
    assert_same_hypotheses(output, beam_one.stdout)


def test_the_drafter_alone(correction_model: ToyModel, correction_drafter: Path) -> None:
    """As --path, or beside a verifier that is not asked."""
    alone = generate_here(correction_model, "nar", "--print-step", path=correction_drafter)
    beside = generate_here(correction_model, "nar", "--drafter-path", correction_drafter)
    assert_same_hypotheses(beside, alone)
    for sentence in parse_generate(alone).values():
        assert sentence.steps == -(-(len(sentence.tokens) + 1) // BLOCK_SIZE)


@pytest.fixture(scope="module")
def small(correction_model: ToyModel) -> Path:
    """As large as its verifier: --drafts auto would find that drafts do not pay."""
    [found] = correction_model.checkpoint.parent.glob(EARLIER)
    return found


def test_an_ordinary_model_drafts(correction_model: ToyModel, small: Path, beam_one: Process) -> None:
    """One by one and in batches of 16; --decoding aggressive sees what kind of drafter it is."""
    by_one = generate(correction_model, "aggressive", "--drafter-path", small, "--drafts", "whole", "--batch-size", 1)
    assert_same_hypotheses(by_one.stdout, beam_one.stdout)
    log = by_one.stdout + by_one.stderr
    [summary] = summaries(log)
    assert "--decoding speculative: " in log
    assert "drafts of at most 4 tokens by a model" in log
    assert re.search(r"--drafter-path \S+: 0\.\d million weights; of the verifier 0\.\d", log)
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > 1.5
    options = ["--drafter-path", small, "--drafts", "whole", "--block-size", 2, "--batch-size", 16]
    assert_same_hypotheses(generate_here(correction_model, "speculative", *options), beam_one.stdout)


def test_a_beam_search_by_an_ordinary_model(correction_model: ToyModel, small: Path) -> None:
    options = ["--beam", 5, "--nbest", 5, *WITHOUT_LONG]
    found = generate_here(correction_model, "aggressive-beam", *options, "--drafter-path", small)
    assert_same_lists(found, generate_here(correction_model, None, *options), 5)
