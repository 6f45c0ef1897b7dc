"""Generators of small random models, and what stock fairseq says in their place."""

import functools
from typing import Any

from fairseq.models import FairseqEncoderDecoderModel

from fairseq_aggdec.generation import modes
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.support.oracle import Lists, by_fairseq
from tests.support.random_models import (
    dictionary,
    model_of_shape,
    random_batch,
    random_model,
)

Texts = list[list[list[int]]]
"""the tokens of each sentence's hypotheses, best first"""
WORDS = dictionary(30)
FEW_WORDS = dictionary(12)
BATCHES = [
    random_batch(seed, WORDS, lengths)
    for seed, lengths in enumerate([[3, 6, 1, 4], [7], [2, 2], [5, 1, 8]])
]
BATCH = BATCHES[0]
MODES = [
    mode.name
    for mode in modes.MODES.values()
    if mode.is_lossless
    and mode.drafter != modes.HEADS
    and not (mode.is_fairseqs or mode.alternatives)
    if not mode.needs_drafter
]
"""the lossless modes in which every model can decode: `greedy`, `iad`, `aggressive-beam` and new ones"""


def small_model(seed: int = 1, **options: Any) -> FairseqEncoderDecoderModel:
    return random_model(seed, WORDS, eos_share=0.1, **options)


@functools.lru_cache(maxsize=200)
def cached_model(shape: str, seed: int, words: int = 12) -> FairseqEncoderDecoderModel:
    """A model of a named shape and a number of words, which tests must leave as it is."""
    positions = 24 if seed % 3 == 1 else 64
    eos_share = (0.1, 0.05, 0.2, 0.02)[seed % 4]
    symbols = dictionary(words)
    return model_of_shape(
        shape, seed, symbols, eos_share, max_target_positions=positions
    )


def generator(
    models: Any, mode: str, words: Any = WORDS, **options: Any
) -> AggressiveGenerator:
    """A beam of 3 for `aggressive-beam`, and outputs of at most 20 tokens, unless the options say otherwise."""
    kind, beam = (
        (AggressiveBeamGenerator, 3)
        if mode == "aggressive-beam"
        else (AggressiveGenerator, 1)
    )
    options = {"beam_size": beam, "max_len_b": 20, "keep_drafts": False} | options
    return kind.of(models, words, src_dict=words, decoding=mode, **options)


def decoded(ours: AggressiveGenerator, batch: dict[str, Any]) -> Texts:
    return tokens(ours.generate([], batch))


def tokens(found: Lists) -> Texts:
    return [
        [hypothesis["tokens"].tolist() for hypothesis in n_best] for n_best in found
    ]


def stock(model: FairseqEncoderDecoderModel, mode: str, batch: dict[str, Any]) -> Texts:
    beam = 3 if mode == "aggressive-beam" else 1
    return tokens(by_fairseq([model], WORDS, batch, beam, max_len_b=20))
