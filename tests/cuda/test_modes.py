"""Every mode in every precision and on every backend of the device: the output of fairseq's own search there."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from fairseq import utils
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.verify.differences import NEAR_TIE, NEAR_TIES, differences, gap_of
from tests.generation.test_beam_generator import WORDS, assert_same_lists, beams, by_fairseq
from tests.generation.test_beam_generator import cached_model as cached_list_model
from tests.generation.test_generator import JOINED, Hypothesis, Models, OracleGenerator, cached_model, decode
from tests.support.random_blockwise import random_blockwise
from tests.support.random_drafters import random_drafter
from tests.support.random_models import ENGINE_SHAPES, model_of_shape, random_batch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
LENGTHS = ([9], [5, 0, 20, 1, 12, 2, 7], [3 + n % 11 for n in range(32)])
LIMIT: dict[str, Any] = {"max_len_b": 24}
WIDE: dict[str, Any] = {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("embed_dim", 64), ("ffn_embed_dim", 64), ("attention_heads", 2))
}
"""sizes that Triton's kernels support"""
BY_DEFAULT, OTHERS = "", ("graphs", "plain")  # values of AGGDEC_BACKEND
CASES = [
    *((shape, precision, BY_DEFAULT) for shape in ENGINE_SHAPES for precision in DTYPES),
    *((ENGINE_SHAPES[0], precision, backend) for precision in ("fp32", "fp16") for backend in OTHERS),
]


def on(device: torch.device, model: Any, dtype: torch.dtype = torch.float32) -> Any:
    return copy.deepcopy(model).to(device, dtype)


def batch(seed: int, lengths: Sequence[int], device: torch.device) -> dict[str, Any]:
    sample = random_batch(seed, JOINED, list(lengths))
    moved: dict[str, Any] = utils.apply_to_sample(lambda tensor: tensor.to(device), sample)
    return moved


def tokens(hypotheses: Sequence[Hypothesis]) -> dict[int, list[int]]:
    return {number: hypothesis["tokens"].tolist() for number, hypothesis in enumerate(hypotheses)}


def stock(models: Models, sample: Mapping[str, Any]) -> list[Hypothesis]:
    generator = SequenceGenerator(models, JOINED, beam_size=1, **LIMIT)
    return [hypotheses[0] for hypotheses in generator.generate(models, sample)]


def check(models: Models, sample: dict[str, Any], found: list[Hypothesis], precision: str) -> None:
    """Outputs are fairseq's own, but for near-ties."""
    net_input = sample["net_input"]
    alone = {
        row: {"net_input": {name: value[row : row + 1] for name, value in net_input.items()}}
        for row in range(len(found))
    }
    reference = SequenceGenerator(models, JOINED, beam_size=1, **LIMIT)
    gap = gap_of(lambda one, prefix: reference.generate(models, one, prefix_tokens=prefix), alone)
    differing = differences(tokens(stock(models, sample)), tokens(found), gap, NEAR_TIES.get(precision, NEAR_TIE))
    faults = [one.describe("found", "fairseq", JOINED.symbols) for one in differing if not one.near_tie]
    assert not faults, faults
    if precision == "fp32":
        assert len(differing) <= len(found) / 4, "too many ties to be ties"


def generators(models: Models, drafter: LoadedDrafter, answers: list[list[int]]) -> dict[str, Any]:
    """All lossless modes; those that know the answer have most of their drafts accepted."""
    block = BlockDraftOptions(drafter, 6)
    itself: dict[str, Any] = {"block_draft": BlockDraftOptions(LoadedDrafter(copy.deepcopy(models[0])), 4)}
    common = {"src_dict": JOINED, **LIMIT}
    knows: dict[str, Any] = {"answers": answers, "seed": 9, "drafts": "whole"}  # a CPU verifies few drafts in batches
    return {
        "greedy": AggressiveGenerator.of(models, JOINED, decoding="greedy", **common),
        "iad": AggressiveGenerator.of(models, JOINED, decoding="iad", **common),
        "gad": AggressiveGenerator.of(models, JOINED, decoding="gad", block_draft=block, **common),
        "speculative that knows": AggressiveGenerator.of(
            models, JOINED, decoding="speculative", drafts="whole", **itself, **common
        ),
        "iad that knows": OracleGenerator.of(models, JOINED, **knows, **common),
        "gad that knows": OracleGenerator.of(models, JOINED, decoding="gad", block_draft=block, **knows, **common),
    }


@pytest.mark.parametrize(("shape", "precision", "backend"), CASES)
def test_every_mode_gives_fairseqs_output(
    shape: str, precision: str, backend: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    seed = 1 + ENGINE_SHAPES.index(shape)
    models: Models = [on(device, model_of_shape(shape, seed, JOINED, JOINED, 0.05, **WIDE), DTYPES[precision])]
    drafter = LoadedDrafter(random_drafter("causal, post-norm learned", seed, JOINED, JOINED, 6, **WIDE))
    for lengths in LENGTHS:
        sample = batch(seed, lengths, device)
        answers = list(tokens(stock(models, sample)).values())
        for name, generator in generators(models, drafter, answers).items():
            found = decode(generator, models, sample)
            check(models, sample, found, precision)
            if "knows" in name:
                assert generator.totals.iterations < generator.totals.committed, "nothing was accepted"


@pytest.mark.parametrize("heads", [1, 3, 8, 16])
def test_the_papers_numbers_of_heads(heads: int, device: torch.device) -> None:
    """Block attention takes another way where there are many heads."""
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
             (("embed_dim", 48 if heads == 3 else 128), ("attention_heads", heads))}  # fmt: skip
    models: Models = [on(device, model_of_shape("post-norm sinusoidal", 1, JOINED, JOINED, 0.05, **sizes))]
    for lengths in LENGTHS:
        sample = batch(heads, lengths, device)
        answers = list(tokens(stock(models, sample)).values())
        knows = OracleGenerator.of(models, JOINED, src_dict=JOINED, answers=answers, seed=9, **LIMIT)
        check(models, sample, decode(knows, models, sample), "fp32")


@pytest.mark.parametrize("precision", list(DTYPES))
def test_proposal_heads_give_fairseqs_output(precision: str, device: torch.device) -> None:
    model = random_blockwise("post-norm sinusoidal", "identity", 1, JOINED, JOINED, 4, eos_share=0.05)
    models: Models = [on(device, model, DTYPES[precision])]
    generator = AggressiveGenerator.of(
        models, JOINED, src_dict=JOINED, decoding="blockwise", block_draft=BlockDraftOptions(None, 4), **LIMIT
    )
    for lengths in LENGTHS:
        sample = batch(2, lengths, device)
        check(models, sample, decode(generator, models, sample), precision)


@pytest.mark.parametrize(
    ("shape", "backend"), [*((one, BY_DEFAULT) for one in ENGINE_SHAPES), *((ENGINE_SHAPES[0], one) for one in OTHERS)]
)
def test_aggressive_beam_gives_fairseqs_lists(
    shape: str, backend: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All five hypotheses of every sentence; scores within the rounding of the device."""
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    models: Models = [on(device, cached_list_model(shape, 1))]
    for lengths in LENGTHS:
        sample: dict[str, Any] = utils.apply_to_sample(
            lambda tensor: tensor.to(device), random_batch(3, WORDS, list(lengths))
        )
        expected = by_fairseq(models, sample, 5, **LIMIT)
        for budget in (None, 16):  # step by step, and looking ahead
            found = beams(models, 5, budget=budget, **LIMIT).generate(models, sample)
            assert_same_lists(found, expected, rounding=1e-4)


@pytest.mark.parametrize("arithmetic", [Arithmetic(bit_exact=True), Arithmetic("int8")])
def test_what_needs_other_kernels_is_refused(arithmetic: Arithmetic, device: torch.device) -> None:
    lacking = torch.float32 if device.type == "cuda" and arithmetic.bit_exact else torch.float16
    models: Models = [on(device, cached_model("post-norm sinusoidal", 1), lacking)]
    common: dict[str, Any] = {"src_dict": JOINED, "engines": Engines(arithmetic), **LIMIT}
    with pytest.raises(AggdecError, match=rf"{arithmetic.options()} needs this plugin's kernels, which "):
        decode(
            AggressiveGenerator.of(models, JOINED, decoding="greedy", **common), models, batch(6, LENGTHS[1], device)
        )
