"""Blockwise decoding of random models."""

import functools

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.generation.test_generator import JOINED, cached_model, decode
from tests.support.random_blockwise import random_blockwise
from tests.support.random_models import random_batch

HEADS = 6


@functools.lru_cache(maxsize=100)
def cached_blockwise(shape: str, kind: str, seed: int) -> BlockwiseTransformerModel:
    return random_blockwise(shape, kind, seed, JOINED, JOINED, HEADS, eos_share=0.05)


def test_models_without_heads_or_engine_are_refused() -> None:
    models = [cached_model("post-norm sinusoidal", 0)]
    heads = BlockDraftOptions(None, HEADS)
    generator = AggressiveGenerator.of(models, JOINED, src_dict=JOINED, decoding="blockwise", block_draft=heads)
    with pytest.raises(AggdecError, match="--decoding blockwise needs this plugin's engine"):
        decode(generator, models, random_batch(1, JOINED, [3]))
