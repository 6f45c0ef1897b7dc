"""The same bits in every mode and every batch: what `--bit-exact` promises and low precisions are lossless by."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.generation.test_generator import JOINED, Hypothesis, OracleGenerator, cached_model, decode
from tests.support.random_models import ENGINE_SHAPES, dictionary, model_of_shape, random_batch, twin_words


def assert_same_bits(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    differing = [
        number
        for number, (one, other) in enumerate(zip(found, expected, strict=True))
        if not torch.equal(one["tokens"], other["tokens"])
        or not torch.equal(one["positional_scores"], other["positional_scores"])
        or one["score"] != other["score"]
    ]
    assert not differing, [(found[number], expected[number]) for number in differing[:1]]


@pytest.mark.parametrize("limit", [15, 200])
def test_words_that_differ_in_the_last_bit(limit: int) -> None:
    """Which of two words with equal log-probabilities is taken does not depend on what else is in the block."""
    words = dictionary(2000)
    engines = Engines(Arithmetic(bit_exact=True))
    settings: dict[str, Any] = {"src_dict": words, "engines": engines, "max_len_b": limit}
    for seed in range(3):
        models, sample = [model_of_shape(ENGINE_SHAPES[0], seed, words, words, 0.05)], random_batch(seed, words, [7])
        twin_words(models[0], apart=True)
        models[0].decoder.output_projection.weight.data *= 0.15
        expected = decode(AggressiveGenerator.of(models, words, decoding="greedy", **settings), models, sample)
        answers = [hypothesis["tokens"].tolist() for hypothesis in expected]
        for adversary in range(3):
            oracle = OracleGenerator.of(models, words, answers=answers, seed=adversary, **settings)
            assert_same_bits(decode(oracle, models, sample), expected)


@pytest.mark.int8
def test_low_precision_is_another_arithmetic() -> None:
    """Scores near the model's own, and not the same."""
    models, sample = [cached_model(ENGINE_SHAPES[0], 3)], random_batch(3, JOINED, [5, 9, 2, 7])
    scores: list[Tensor] = []
    for arithmetic in (Arithmetic(), Arithmetic("int8")):
        generator = AggressiveGenerator.of(
            models, JOINED, src_dict=JOINED, decoding="greedy", engines=Engines(arithmetic), max_len_b=3
        )
        first = [hypothesis["positional_scores"][0] for hypothesis in decode(generator, models, sample)]
        scores.append(torch.stack(first))
    assert not torch.equal(*scores)
    torch.testing.assert_close(*scores, atol=0.3, rtol=0.1)
