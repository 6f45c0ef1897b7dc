"""GAD and GAD++ over random verifiers and random, untrained drafters."""

import functools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.engine.engines import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import DRAFTS
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.scheduling import costs
from tests.generation.test_generator import (
    JOINED,
    Hypothesis,
    Models,
    OracleGenerator,
    assert_same_up_to_near_ties,
    cached_model,
    decode,
    stock_log_probs,
)
from tests.support.random_drafters import random_drafter
from tests.support.random_models import ENGINE_SHAPES, FALLBACK_SHAPES, random_batch, stock_beam_one

TRAINED = 30  # block size of the drafters here


@functools.lru_cache(maxsize=100)
def cached_drafter(shape: str, seed: int) -> NarDrafterModel:
    return random_drafter(shape, seed, JOINED, JOINED, TRAINED, max_target_positions=64)


def gad(models: Models, drafter: NarDrafterModel, block_size: int = 5, **options: Any) -> AggressiveGenerator:
    options = {"src_dict": JOINED, "decoding": "gad", **options}
    loaded = LoadedDrafter(drafter)
    block_draft = BlockDraftOptions(loaded, loaded.block_size(block_size))
    return AggressiveGenerator.of(models, JOINED, block_draft=block_draft, **options)


def check_by_equations(log_probs: Tensor, hypothesis: Hypothesis, beta: int, tolerance: float) -> int:
    """Every drafted token up to the first rejected one, and every token of the verifier's own.

    Args:
        log_probs: the verifier's along the output, L x V.
        hypothesis: the output.
        beta: of Equation 8.
        tolerance: of Equation 9.

    Returns:
        how many accepted tokens are not the verifier's best.
    """
    tokens, stats = hypothesis["tokens"].tolist(), hypothesis["stats"]
    loosely, begin, near = 0, 0, 1e-4
    for draft, accepted, committed in zip(hypothesis["history"], stats.accepted, stats.committed, strict=True):
        drafted = draft["tokens"].tolist()
        for number, token in enumerate(tokens[begin : begin + committed]):
            here = log_probs[begin + number]
            best, ranked = float(here.max()), here.sort(descending=True).values
            if number < accepted:
                assert token == drafted[number]
                assert float(here[token]) >= float(ranked[beta - 1]) - near  # Equation 8
                assert best - float(here[token]) <= tolerance + near  # Equation 9
                loosely += token != int(here.argmax())
                continue
            assert best - float(here[token]) <= near, "the verifier's own token is its best"
            if number < len(drafted):
                score = float(here[drafted[number]])
                in_beta = score > float(ranked[beta - 1]) + near
                assert not (in_beta and best - score < tolerance - near), "a good draft was rejected"
        begin += committed
    assert begin == len(tokens)
    return loosely


def test_gad_plus_plus_accepts_by_the_equations() -> None:
    """And leaves the path of greedy decoding often enough for that to say something."""
    loosely, limit = 0, 40
    for seed, shape in enumerate([*ENGINE_SHAPES, *FALLBACK_SHAPES]):
        models, sample = [cached_model(shape, 3 * seed)], random_batch(seed, JOINED, [5, 9, 2, 7][: 1 + seed % 4])
        beta, tolerance = [(2, 0.3), (3, 1.0), (5, 3.0), (16, 6.0)][seed % 4]
        stock = stock_beam_one(models, JOINED, sample, max_len_b=limit)
        answers = [hypothesis["tokens"].tolist() for hypothesis in stock]
        options = {"src_dict": JOINED, "top_beta": beta, "tolerance": tolerance, "max_len_b": limit}
        options["block_draft"] = BlockDraftOptions(LoadedDrafter(cached_drafter("bidirectional", 0)), 9)
        generator = OracleGenerator.of(models, JOINED, decoding="gad++", answers=answers, seed=seed, **options)
        for row, hypothesis in enumerate(decode(generator, models, sample)):
            output = hypothesis["tokens"].tolist()[:limit]  # behind it EOS is forced
            read = [stock_log_probs(models, sample, row, output[:length], 1.0) for length in range(len(output))]
            log_probs = torch.stack(read)
            log_probs[:, JOINED.pad()] = -math.inf
            log_probs[0, JOINED.eos()] = -math.inf  # --min-len is 1
            if len(output) == hypothesis["tokens"].numel():
                loosely += check_by_equations(log_probs, hypothesis, beta, tolerance)
            expected = log_probs.gather(1, hypothesis["tokens"][:limit, None]).squeeze(1)
            torch.testing.assert_close(hypothesis["positional_scores"][:limit], expected, atol=1e-4, rtol=1e-4)
    assert loosely >= 5


@pytest.mark.parametrize("fits_into_caches", [True, False])
def test_one_sentence_of_a_model_beyond_the_caches_gets_only_drafts_that_pay(
    fits_into_caches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "_WEIGHTS_IN_CACHE", 1e9 if fits_into_caches else 0)
    models, sample = [cached_model("post-norm sinusoidal", 1)], random_batch(1, JOINED, [9])
    drafter = cached_drafter("causal, source copy", 1)  # untrained: hardly anything of its drafts passes
    found, whole = (decode(gad(models, drafter, max_len_b=20, drafts=how), models, sample) for how in DRAFTS)
    assert_same_up_to_near_ties(found, whole, models, sample, max_len_b=20)
    drafts = [[[one["tokens"].tolist() for one in h["history"]] for h in outputs] for outputs in (found, whole)]
    assert (drafts[0] == drafts[1]) == fits_into_caches
