"""GAD, GAD++ and the drafter alone through fairseq's commands, with a drafter that was trained for the verifier."""

from pathlib import Path

import pytest

from fairseq_aggdec.lab.reporting.trace import read_traces
from tests.cli_integration.correction import (
    BLOCK_SIZE,
    SENTENCES,
    Process,
    assert_same_hypotheses,
    generate,
    generate_here,
    summaries,
)
from tests.helpers import ToyModel, parse_generate


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
