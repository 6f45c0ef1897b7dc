"""fairseq's BART as verifier: every mode says what a beam of one says, as summarization searches, too."""

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.generation.test_beam_generator import assert_same_lists
from tests.generation.test_generator import (
    JOINED,
    assert_same_up_to_near_ties,
    decode,
)
from tests.support.random_blockwise import on_base
from tests.support.random_models import (
    bart_options,
    draw_heads,
    random_batch,
    random_network,
    stock_beam_one,
)

BARTS = ("bart_base", "bart_large", "bart_12_2", "mbart_base")
BLOCK = 5


@functools.lru_cache(maxsize=60)
def bart(arch: str, seed: int) -> BARTModel:
    """With one decoder layer."""
    return random_network(arch, seed, JOINED, JOINED, 0.1, max_target_positions=64, decoder_layers=1)


@pytest.mark.parametrize("arch", BARTS)
def test_heads_on_bart(arch: str, tmp_path: Path) -> None:
    """By --base-checkpoint and --decoding blockwise; head 1 is BART itself."""
    base, sample = bart(arch, 0), random_batch(1, JOINED, [6, 13, 2])
    weights = {**base.state_dict(), "classification_heads.x.dense.weight": torch.zeros(2, 2)}  # as published
    torch.save({"model": weights, "cfg": {"model": bart_options(arch, decoder_layers=1)}}, tmp_path / "base.pt")
    model = on_base(tmp_path / "base.pt", JOINED, JOINED, block_heads=BLOCK, identity_head=True).eval()
    draw_heads(model)
    options: dict[str, Any] = {"no_repeat_ngram_size": 3, "min_len": 8, "max_len_b": 20, "block_ngrams": True}
    options["src_dict"] = JOINED
    heads = BlockDraftOptions(None, BLOCK)
    generator = AggressiveGenerator.of([model], JOINED, decoding="blockwise", block_draft=heads, **options)
    reference = decode(AggressiveGenerator.of([base], JOINED, decoding="greedy", **options), [base], sample)
    assert_same_up_to_near_ties(decode(generator, [model], sample), reference, [base], sample)
    assert generator.totals.drafted > 0


class OwnDecoder(TransformerDecoderBase):
    """One that the engine does not know."""


def test_a_bart_that_has_searched_with_a_beam_decodes_as_before() -> None:
    """The search leaves its attention to the source set to the beam; fairseq's own beam of one is then wrong."""
    model = random_network("bart_base", 0, JOINED, JOINED, 0.1, encoder_layers=2, decoder_layers=2)
    sample = random_batch(1, JOINED, [6, 13, 2, 8, 9])
    models, options = [model], {"max_len_b": 20}
    greedy = stock_beam_one(models, JOINED, sample, **options)
    stock = SequenceGenerator(models, JOINED, beam_size=5, **options)
    lists = stock.generate(models, sample)
    own: dict[str, Any] = {"src_dict": JOINED, **options}
    beams = AggressiveBeamGenerator.of(models, JOINED, decoding="aggressive-beam", beam_size=5, **own)
    assert_same_lists(beams.generate(models, sample), lists)
    assert beams.totals.sentences == len(lists), "by the engine"
    for kind in (TransformerDecoderBase, OwnDecoder):
        model.decoder.__class__ = kind
        iad = AggressiveGenerator.of(models, JOINED, decoding="iad", engines=Engines(), **own)
        assert_same_up_to_near_ties(decode(iad, models, sample), greedy, models, sample)
        assert iad.totals.drafted > 0
        if kind is TransformerDecoderBase:
            rounded = {"engines": Engines(Arithmetic(bit_exact=True)), **own}
            decode(AggressiveGenerator.of(models, JOINED, decoding="greedy", **rounded), models, sample)
    again = stock.generate(models, sample)
    assert [[one["score"] for one in found] for found in again] == [[one["score"] for one in found] for found in lists]
