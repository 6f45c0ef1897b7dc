"""fairseq's BART as verifier: every mode says what a beam of one says, as summarization searches, too."""

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.sequence_generator import SequenceGenerator
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.engine.supported_models import unsupported_decoder
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.random_blockwise import on_base
from tests.random_drafters import random_drafter
from tests.random_models import (
    bart_options,
    draw_heads,
    random_batch,
    random_network,
    share_encoder,
    stock_beam_one,
)
from tests.scripted_decoding import examples
from tests.test_beam_generator import assert_same_lists
from tests.test_generator import (
    JOINED,
    Hypothesis,
    Models,
    OracleGenerator,
    assert_same_up_to_near_ties,
    batch_lengths,
    decode,
    option_values,
    seeds,
)

BARTS = ("bart_base", "bart_large", "bart_12_2", "mbart_base")
BLOCK = 5
BART_SHAPE = {
    "encoder_learned_pos": True, "decoder_learned_pos": True, "layernorm_embedding": True, "no_scale_embedding": True,
    "activation_fn": "gelu", "share_all_embeddings": True,
}  # fmt: skip


@functools.lru_cache(maxsize=60)
def bart(arch: str, seed: int) -> BARTModel:
    """Some end soon, some have few positions, some one decoder layer."""
    options = {"max_target_positions": 24 if seed % 4 == 1 else 64, "decoder_layers": 1 + seed % 2}
    return random_network(arch, seed, JOINED, JOINED, (0.1, 0.05, 0.2)[seed % 3], **options)


@functools.lru_cache(maxsize=50)
def drafter(arch: str, seed: int) -> NarDrafterModel:
    """One on the encoder of `bart(arch, seed)`."""
    scaled = {**BART_SHAPE, "no_scale_embedding": not arch.startswith("mbart")}
    model = random_drafter("causal, post-norm sinusoidal", seed, JOINED, JOINED, BLOCK, **scaled)
    share_encoder(model, bart(arch, seed))
    return model


def batch_with_bos(seed: int, lengths: list[int]) -> dict[str, Any]:
    """Random sources `<s> ... </s>`, as BART's own interface encodes them, padded on the right."""
    sample = random_batch(seed, JOINED, lengths, left_pad=False)
    net_input = sample["net_input"]
    tokens: Tensor = net_input["src_tokens"]
    begin = torch.full_like(tokens[:, :1], JOINED.bos())
    net_input.update(src_tokens=torch.cat([begin, tokens], dim=1), src_lengths=net_input["src_lengths"] + 1)
    return sample


def check(
    arch: str, seed: int, sample: dict[str, Any], prefix: Tensor | None = None, **options: Any
) -> list[Hypothesis]:
    """The lossless modes on one BART against stock fairseq; returns that one's output."""
    models: Models = [bart(arch, seed)]
    stock = stock_beam_one(models, JOINED, sample, prefix_tokens=prefix, **options)
    answers = [hypothesis["tokens"].tolist() for hypothesis in stock]
    settings: dict[str, Any] = {"src_dict": JOINED, **options}
    block_draft = BlockDraftOptions(LoadedDrafter(drafter(arch, seed)), BLOCK)
    for generator in (
        AggressiveGenerator.of(models, JOINED, decoding="greedy", **settings),
        AggressiveGenerator.of(models, JOINED, decoding="gad", block_draft=block_draft, **settings),
        OracleGenerator.of(models, JOINED, answers=answers, seed=seed, **settings),
    ):
        found = decode(generator, models, sample, prefix)
        assert_same_up_to_near_ties(found, stock, models, sample, **options)
        assert generator.totals.sentences == len(found)
    return stock


@examples(7)
@given(st.sampled_from(BARTS), seeds, batch_lengths, option_values, st.booleans(), st.booleans())
def test_every_mode_gives_what_beam_one_gives(
    arch: str, seed: int, lengths: list[int], options: dict[str, Any], bos_in_source: bool, forced: bool
) -> None:
    """BART's own interface puts `<s>` before the source and forces it as the first token of the output."""
    assert unsupported_decoder(bart(arch, seed).decoder) is None, "the fast engine"
    sample = batch_with_bos(seed, lengths) if bos_in_source else random_batch(seed, JOINED, lengths)
    prefix = torch.full((len(lengths), 1), JOINED.bos()) if forced else None
    options["no_repeat_ngram_size"] = 0
    stock = check(arch, seed, sample, prefix, **options)
    if forced:
        assert all(hypothesis["tokens"][0] == JOINED.bos() for hypothesis in stock)


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
