"""Heads trained on a frozen model by fairseq-train, and decoded with by fairseq-generate."""

import re

import pytest

from tests.cli.correction import (
    HEADS,
    Process,
    TrainedHeads,
    assert_same_hypotheses,
    generate,
    generate_here,
    summaries,
)
from tests.support.helpers import ToyModel, parse_generate


def test_the_training_says_what_it_took_and_how_good_the_heads_are(heads: TrainedHeads) -> None:
    assert re.search(r"base.pt: loaded decoder.embed_positions.weight, decoder.embed_tokens.weight", heads.log)
    assert "base.pt: skipped nothing" in heads.log
    assert "new here decoder.heads.inner, decoder.heads.inner_bias" in heads.log
    accepted = [float(number) for number in re.findall(r"valid on 'valid' subset.* accepted ([\d.]+)", heads.log)]
    assert accepted[-1] > 1.1  # a frozen model of one layer foresees little
    assert re.search(rf"acc_1 [\d.]+ .*acc_{HEADS} [\d.]+", heads.log)


def test_blockwise_gives_the_hypotheses_of_the_base_models_beam_one(
    correction_model: ToyModel, heads: TrainedHeads, beam_one: Process
) -> None:
    options = ["--print-step", "--retain-iter-history", "--batch-size", 1]
    decoded = generate(correction_model, "blockwise", *options, path=heads.checkpoint)
    assert_same_hypotheses(decoded.stdout, beam_one.stdout)
    [figures] = summaries(decoded.stdout + decoded.stderr)
    assert figures["mean_accepted"] > 1, "otherwise this would say little"
    for sentence in parse_generate(decoded.stdout).values():
        drafts = [draft.split() for draft in sentence.history]
        assert sentence.steps == len(drafts)
        assert drafts[0] == []
        assert max(map(len, drafts)) <= HEADS - 1


@pytest.mark.parametrize(
    ("decoding", "options"),
    [("aggressive", ""), (None, ""), ("blockwise", "--min-block 1 --tolerance 0")],
)
def test_what_equals_it(
    correction_model: ToyModel, heads: TrainedHeads, beam_one: Process, decoding: str | None, options: str
) -> None:
    """Also stock fairseq, to which this is an ordinary Transformer."""
    output = generate_here(correction_model, decoding, *options.split(), path=heads.checkpoint)
    assert_same_hypotheses(output, beam_one.stdout)
