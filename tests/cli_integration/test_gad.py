"""GAD, GAD++ and the drafter alone through fairseq's commands, with a drafter that was trained for the verifier."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.small_verbs import export
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.reporting.trace import read_traces
from tests.cli_integration.correction import (
    BLOCK_SIZE,
    EARLIER,
    SENTENCES,
    Process,
    assert_same_hypotheses,
    at_once,
    generate,
    generate_here,
    summaries,
)
from tests.helpers import ToyModel, parse_generate


@pytest.fixture(scope="module")
def runs(
    correction_model: ToyModel, correction_drafter: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Process, Process, Path]:
    """`gad` with all that can be asked for, sentence by sentence, and `gad++` in batches; the former's statistics."""
    stats = tmp_path_factory.mktemp("stats") / "stats.jsonl"
    full = ["--print-step", "--retain-iter-history", "--decoding-stats", stats, "--batch-size", 1]
    drafter = ["--drafter-path", correction_drafter]
    gad, loose = at_once(
        partial(generate, correction_model, "gad", *drafter, *full),
        partial(generate, correction_model, "gad++", *drafter, "--top-beta", 5, "--tolerance", 3),
    )
    return gad, loose, stats


def test_gad_gives_the_hypotheses_of_beam_one(runs: tuple[Process, Process, Path], beam_one: Process) -> None:
    """By a drafter that has learned: otherwise the tests here would say little."""
    assert_same_hypotheses(runs[0].stdout, beam_one.stdout)
    [gad], [loose] = (summaries(run.stdout + run.stderr) for run in runs[:2])
    assert gad["sentences"] == loose["sentences"] == SENTENCES
    assert gad["mean_accepted"] > 1.3
    assert loose["mean_accepted"] > 1.3


def test_steps_drafts_and_statistics(runs: tuple[Process, Process, Path]) -> None:
    sentences = parse_generate(runs[0].stdout)
    records = {record["id"]: record for record in map(json.loads, runs[2].read_text(encoding="utf-8").splitlines())}
    assert records.keys() == sentences.keys()
    traces = {trace.number: trace for trace in read_traces(runs[2])}
    for number, sentence in sentences.items():
        drafts = [draft.split() for draft in sentence.history]
        assert sentence.steps == len(drafts) == records[number]["iterations"]
        assert max(map(len, drafts)) <= BLOCK_SIZE
        assert traces[number].output == [*sentence.tokens, "</s>"]
        assert traces[number].source == sentence.source.split()


@pytest.mark.parametrize(
    ("decoding", "options"),
    [
        ("aggressive", "--block-size 3 --drafts whole"),
        ("gad++", "--top-beta 1 --tolerance 9"),
    ],
)
def test_what_equals_gad(
    correction_model: ToyModel, correction_drafter: Path, beam_one: Process, decoding: str, options: str
) -> None:
    output = generate_here(
        correction_model, decoding, "--drafter-path", correction_drafter, "--retain-iter-history", *options.split()
    )
    assert_same_hypotheses(output, beam_one.stdout)
    if decoding == "aggressive":
        drafts = [draft.split() for sentence in parse_generate(output).values() for draft in sentence.history]
        assert max(map(len, drafts)) == 3


def test_the_drafter_alone(correction_model: ToyModel, correction_drafter: Path) -> None:
    """As --path, or beside a verifier that is not asked."""
    alone = generate_here(correction_model, "nar", "--print-step", path=correction_drafter)
    beside = generate_here(correction_model, "nar", "--drafter-path", correction_drafter)
    assert_same_hypotheses(beside, alone)
    for sentence in parse_generate(alone).values():
        assert sentence.steps == -(-(len(sentence.tokens) + 1) // BLOCK_SIZE)


def test_exported_without_what_the_verifier_has(
    correction_model: ToyModel, correction_drafter: Path, beam_one: Process, tmp_path: Path
) -> None:
    data = ["--data", str(correction_model.data)]
    verifier = str(correction_model.checkpoint)
    export([str(correction_drafter), str(tmp_path), *data, "--fp32", "--without-shared", verifier])
    assert "encoder.embed_tokens.weight" not in torch.load(tmp_path / "model.pt", weights_only=False)["model"]
    found = generate_here(correction_model, "gad", "--drafter-path", tmp_path / "model.pt")
    assert_same_hypotheses(found, beam_one.stdout)
    [earlier] = correction_model.checkpoint.parent.glob(EARLIER)
    with pytest.raises(AggdecError, match="that it shares with the verifier"):
        generate_here(correction_model, "gad", "--drafter-path", tmp_path / "model.pt", path=earlier)
