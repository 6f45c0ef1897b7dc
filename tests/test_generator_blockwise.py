"""Blockwise decoding of random models: the same hypotheses as fairseq's own beam of one over head 1."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.verification import EXACT, Acceptance
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.random_blockwise import HEAD_KINDS, random_blockwise
from tests.random_models import ENGINE_SHAPES, random_batch, stock_beam_one
from tests.scripted_decoding import examples
from tests.test_generator import (
    JOINED,
    Models,
    assert_same_up_to_near_ties,
    cached_model,
    decode,
    option_values,
    seeds,
)

HEADS = 6


@functools.lru_cache(maxsize=100)
def cached_blockwise(shape: str, kind: str, seed: int) -> BlockwiseTransformerModel:
    return random_blockwise(shape, kind, seed, JOINED, JOINED, HEADS, eos_share=0.05)


def blockwise(models: Models, heads: int = HEADS, accept: Acceptance = EXACT, **options: Any) -> AggressiveGenerator:
    options |= {"decoding": "blockwise", "block_draft": BlockDraftOptions(None, heads), "accept": accept}
    return AggressiveGenerator.of(models, JOINED, src_dict=JOINED, **options)


@examples(8)
@given(
    st.sampled_from(ENGINE_SHAPES),
    st.sampled_from(list(HEAD_KINDS)),
    seeds,
    st.integers(1, HEADS),
    st.lists(st.integers(1, 12), min_size=1, max_size=16),
    option_values,
)
def test_equals_stock_beam_one(
    shape: str, kind: str, seed: int, heads: int, lengths: list[int], options: dict[str, Any]
) -> None:
    models = [cached_blockwise(shape, kind, seed % 5)]
    sample = random_batch(seed, JOINED, lengths)
    found = decode(blockwise(models, heads, **options), models, sample)
    assert_same_up_to_near_ties(found, stock_beam_one(models, JOINED, sample, **options), models, sample, **options)
    for hypothesis in found:
        assert all(len(draft["tokens"]) <= max(0, heads - 1) for draft in hypothesis["history"])
        assert hypothesis["stats"].drafted[0] == 0


def test_models_without_heads_or_engine_are_refused() -> None:
    models = [cached_model("post-norm sinusoidal", 0)]
    with pytest.raises(AggdecError, match="--decoding blockwise needs this plugin's engine"):
        decode(blockwise(models), models, random_batch(1, JOINED, [3]))
