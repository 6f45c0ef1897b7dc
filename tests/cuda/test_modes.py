"""Every mode in every precision and on every backend of the device: the output of fairseq's own search there."""

import copy
import math
from typing import Any

import pytest
import torch

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.lab.verify.differences import NEAR_TIE, NEAR_TIES
from tests.support.on_device import LENGTHS, LIMIT, WIDE, batch, on
from tests.support.oracle import Lists, OracleGenerator, assert_fairseqs, by_fairseq
from tests.support.random_models import (
    ENGINE_SHAPES,
    model_of_shape,
    random_blockwise,
    random_drafter,
)
from tests.support.small_generators import FEW_WORDS, WORDS, cached_model, generator

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
FIRST, *OTHER_SHAPES = ENGINE_SHAPES
# values of AGGDEC_BACKEND
BY_DEFAULT = ""
OTHERS = ("graphs", "plain")
CASES = [
    *((FIRST, precision, BY_DEFAULT) for precision in DTYPES),
    *((shape, "fp16", BY_DEFAULT) for shape in OTHER_SHAPES),
    *((FIRST, "fp16", backend) for backend in OTHERS),
]


def check(models: Any, sample: dict[str, Any], found: Lists, precision: str) -> None:
    """Outputs are fairseq's own, but for near-ties."""
    near_tie = NEAR_TIES.get(precision, NEAR_TIE)
    expected = assert_fairseqs(
        found, models, FEW_WORDS, sample, near_tie=near_tie, scores=math.inf, **LIMIT
    )
    if precision == "fp32":
        pairs = zip(found, expected, strict=True)
        differing = sum(
            ours["tokens"].tolist() != theirs["tokens"].tolist()
            for (ours,), (theirs,) in pairs
        )
        assert differing <= len(found) / 4, "too many ties to be ties"


def knowing(
    models: Any, sample: dict[str, Any], decoding: str, **options: Any
) -> OracleGenerator:
    """A generator that knows the answer, so that most of its drafts are accepted."""
    stock = by_fairseq(models, FEW_WORDS, sample, **LIMIT)
    answers = {
        row: hypothesis["tokens"].tolist() for row, (hypothesis,) in enumerate(stock)
    }
    knows: Any = {"answers": answers, "seed": 9, "longest": 10}
    return OracleGenerator.of(
        models,
        FEW_WORDS,
        src_dict=FEW_WORDS,
        decoding=decoding,
        **knows,
        **options,
        **LIMIT,
    )


@pytest.mark.parametrize("shape, precision, backend", CASES)
def test_every_mode_gives_fairseqs_output(
    shape: str,
    precision: str,
    backend: str,
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    seed = 1 + ENGINE_SHAPES.index(shape)
    models = [
        on(
            device,
            model_of_shape(shape, seed, FEW_WORDS, 0.05, **WIDE),
            DTYPES[precision],
        )
    ]
    drafter = random_drafter("causal, post-norm learned", seed, FEW_WORDS, 6, **WIDE)
    block, itself = (
        BlockDraftOptions(LoadedDrafter(model), size)
        for model, size in ((drafter, 6), (copy.deepcopy(models[0]), 4))
    )
    whole = {"drafts": "whole"}  # a CPU verifies few drafts in batches
    for lengths in LENGTHS:
        sample = batch(seed, lengths, device)
        know_nothing = [
            generator(models, "greedy", FEW_WORDS, **LIMIT),
            generator(models, "iad", FEW_WORDS, **LIMIT),
            generator(models, "gad", FEW_WORDS, block_draft=block, **LIMIT),
        ]
        know_something = [
            generator(
                models, "speculative", FEW_WORDS, block_draft=itself, **whole, **LIMIT
            ),
            knowing(models, sample, "iad", **whole),
            knowing(models, sample, "gad", block_draft=block, **whole),
        ]
        for ours in know_nothing + know_something:
            check(models, sample, ours.generate(models, sample), precision)
        for ours in know_something:
            assert ours.totals.iterations < ours.totals.committed, (
                "nothing was accepted"
            )


def test_proposal_heads_give_fairseqs_output(device: torch.device) -> None:
    model = random_blockwise(
        "post-norm sinusoidal", "identity", 1, FEW_WORDS, 4, eos_share=0.05
    )
    models = [on(device, model, torch.float16)]
    ours = generator(
        models, "blockwise", FEW_WORDS, block_draft=BlockDraftOptions(None, 4), **LIMIT
    )
    for lengths in LENGTHS:
        sample = batch(2, lengths, device)
        check(models, sample, ours.generate(models, sample), "fp16")


@pytest.mark.parametrize(
    "shape, backend",
    [
        (FIRST, BY_DEFAULT),
        (OTHER_SHAPES[2], BY_DEFAULT),
        *((FIRST, one) for one in OTHERS),
    ],
)
def test_aggressive_beam_gives_fairseqs_lists(
    shape: str, backend: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All five hypotheses of every sentence; scores within the rounding of the device."""
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    models = [on(device, cached_model(shape, 1, 30))]
    for lengths in LENGTHS:
        sample = batch(3, lengths, device, WORDS)
        for budget in (None, 16):  # step by step, and looking ahead
            ours = generator(
                models, "aggressive-beam", beam_size=5, budget=budget, **LIMIT
            )
            assert_fairseqs(
                ours.generate(models, sample), models, WORDS, sample, 5, **LIMIT
            )
