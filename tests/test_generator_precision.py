"""The same bits in every mode and every batch: what `--bit-exact` promises and low precisions are lossless by."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.random_blockwise import random_blockwise
from tests.random_models import ENGINE_SHAPES, dictionary, model_of_shape, random_batch, twin_words
from tests.scripted_decoding import examples
from tests.test_generator import JOINED, Hypothesis, Models, OracleGenerator, cached_model, decode, seeds
from tests.test_generator_gad import cached_drafter

ARITHMETICS = {
    "--bit-exact": Arithmetic(bit_exact=True),
    "--int8 --bit-exact": Arithmetic("int8", bit_exact=True),
    "--int8": Arithmetic("int8"),
}
HEADS = ("learned", "identity", "identity, own hidden")
"""kinds of proposal heads"""


def each_arithmetic_and(first: str, *others: str) -> list[Any]:
    """Parameters: every arithmetic with the first of some variants, and the others with `--bit-exact`."""
    pairs = [*((name, first) for name in ARITHMETICS), *(("--bit-exact", other) for other in others)]
    return [pytest.param(*pair, marks=[pytest.mark.int8] * ("int8" in pair[0])) for pair in pairs]


def parts_of(sample: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """The same sentences in batches of their own, each padded no more than it needs."""
    tokens, pad = sample["net_input"]["src_tokens"], JOINED.pad()
    parts = []
    for rows in tokens.split(size):
        rows = rows[:, rows.ne(pad).any(dim=0)]
        parts.append({"net_input": {"src_tokens": rows, "src_lengths": rows.ne(pad).sum(dim=1)}})
    return parts


def decoded_in_parts(
    generator: AggressiveGenerator, models: Models, sample: dict[str, Any], size: int
) -> list[Hypothesis]:
    return [hypothesis for part in parts_of(sample, size) for hypothesis in decode(generator, models, part)]


def assert_same_bits(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    differing = [
        number
        for number, (one, other) in enumerate(zip(found, expected, strict=True))
        if not torch.equal(one["tokens"], other["tokens"])
        or not torch.equal(one["positional_scores"], other["positional_scores"])
        or one["score"] != other["score"]
    ]
    assert not differing, [(found[number], expected[number]) for number in differing[:1]]


@pytest.mark.parametrize(("options", "drafter"), each_arithmetic_and("causal, post-norm learned"))
@examples(2)
@given(
    st.sampled_from(ENGINE_SHAPES), seeds, st.sampled_from([1, 3, 8]), st.booleans(),
    st.lists(st.sampled_from([0, 1, 2, 5, 9, 20]), min_size=8, max_size=8),
)  # fmt: skip
def test_every_mode_and_every_batch_gives_the_same_bits(
    options: str, drafter: str, shape: str, seed: int, size: int, left_pad: bool, lengths: list[int]
) -> None:
    """greedy in one batch of eight, against all lossless modes in batches of one, three and eight."""
    models, sample = [cached_model(shape, seed)], random_batch(seed, JOINED, lengths, left_pad)
    engines = Engines(ARITHMETICS[options])
    common: dict[str, Any] = {"src_dict": JOINED, "engines": engines, "max_len_b": 16}
    expected = decode(AggressiveGenerator.of(models, JOINED, decoding="greedy", **common), models, sample)

    block_draft = BlockDraftOptions(LoadedDrafter(cached_drafter(drafter, seed)), 6)
    for decoding in ("greedy", "iad", "gad"):
        generator = AggressiveGenerator.of(models, JOINED, decoding=decoding, block_draft=block_draft, **common)
        assert_same_bits(decoded_in_parts(generator, models, sample, size), expected)
    answers = [hypothesis["tokens"].tolist() for hypothesis in expected]
    often_accepted = OracleGenerator.of(models, JOINED, answers=answers, seed=seed, **common)
    assert_same_bits(decode(often_accepted, models, sample), expected)


@pytest.mark.parametrize(("options", "drafts"), each_arithmetic_and(*HEADS))
def test_heads_give_the_same_bits(options: str, drafts: str) -> None:
    models: Models = [random_blockwise("post-norm sinusoidal", drafts, 1, JOINED, JOINED, 4, eos_share=0.05)]
    sample = random_batch(1, JOINED, [5, 20, 1, 9, 2])
    engines = Engines(ARITHMETICS[options])
    common: dict[str, Any] = {"src_dict": JOINED, "engines": engines, "min_len": 9, "max_len_b": 24}
    expected = decode(AggressiveGenerator.of(models, JOINED, decoding="greedy", **common), models, sample)
    heads = BlockDraftOptions(None, 4)
    blockwise = AggressiveGenerator.of(models, JOINED, decoding="blockwise", block_draft=heads, **common)
    for size in (1, 3, 5):
        assert_same_bits(decoded_in_parts(blockwise, models, sample, size), expected)


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
