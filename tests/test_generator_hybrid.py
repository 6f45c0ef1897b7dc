"""Copies and models' drafts over random models: the same hypotheses as fairseq's own beam of one."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.roles import Drafter, DraftSchedule
from fairseq_aggdec.engine.engines import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions, CopyLimits
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.random_blockwise import HEAD_KINDS
from tests.random_drafters import DRAFTER_SHAPES
from tests.random_models import ALL_SHAPES, ENGINE_SHAPES, random_batch, stock_beam_one
from tests.scripted_decoding import examples
from tests.test_generator import (
    JOINED,
    OTHER,
    Hypothesis,
    Models,
    assert_same_up_to_near_ties,
    cached_model,
    decode,
    option_values,
    seeds,
)
from tests.test_generator_blockwise import cached_blockwise
from tests.test_generator_gad import cached_drafter

BLOCK_SIZE = 5
copying = st.builds(CopyLimits, st.integers(1, 3), st.sampled_from([0, 0, 4]), st.sampled_from([0, 0, 6]))
lengths_of_batches = st.sampled_from([1, 16]).flatmap(
    lambda size: st.lists(st.sampled_from([0, 1, 2, 5, 9, 20, 40]), min_size=size, max_size=size)
)


class CopyingOracleGenerator(AggressiveGenerator):
    """The output is an edited copy of the source, as far as the copier knows: what random models lack."""

    def __init__(self, *args: Any, answers: list[list[int]], seed: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answers, self.seed = answers, seed

    def make_drafter(
        self, net_input: dict[str, Any], start: int, encoder_outs: list[dict[str, Any]], schedule: DraftSchedule
    ) -> Drafter:
        width = max(map(len, self.answers))
        edited = torch.full((len(self.answers), width), JOINED.pad())
        for row, answer in enumerate(self.answers):
            edited[row, : len(answer)] = torch.tensor(answer)
            for place in range(self.seed % 4, len(answer) - 1, 4):
                edited[row, place] = JOINED.nspecial + (self.seed + place) % (len(JOINED) - JOINED.nspecial)
        return super().make_drafter({**net_input, "src_tokens": edited}, start, encoder_outs, schedule)


def hybrid(
    models: Models,
    drafter: NarDrafterModel | None,
    kind: type[AggressiveGenerator] = AggressiveGenerator,
    **options: Any,
) -> AggressiveGenerator:
    """By a drafter, or by the models' heads where that is None; `block_draft=None`: by guesses alone."""
    block_draft = BlockDraftOptions(None if drafter is None else LoadedDrafter(drafter), BLOCK_SIZE)
    options = {"src_dict": JOINED, "decoding": "hybrid", "block_draft": block_draft, **options}
    return kind(models, JOINED, **options)


def check(
    models: Models, drafter: NarDrafterModel | None, sample: dict[str, Any], seed: int, ours: dict[str, Any],
    **options: Any,
) -> list[list[Hypothesis]]:  # fmt: skip
    """With the sample's sources and with edited answers to copy from; returns both."""
    stock = stock_beam_one(models, JOINED, sample, **options)
    answers = [hypothesis["tokens"].tolist() for hypothesis in stock]
    prefix = options.pop("prefix_tokens", None)
    found = []
    for generator in (
        hybrid(models, drafter, **options, **ours),
        hybrid(models, drafter, CopyingOracleGenerator, answers=answers, seed=seed, **options, **ours),
    ):
        found.append(decode(generator, models, sample, prefix))
        assert_same_up_to_near_ties(found[-1], stock, models, sample, **options)
        assert generator.totals.committed == sum(hypothesis["tokens"].numel() for hypothesis in found[-1])
        assert generator.totals.iterations <= generator.totals.committed
    return found


@pytest.mark.parametrize("drafts", ["a drafter", "heads", "guesses"])
@examples(5)
@given(
    st.sampled_from(ALL_SHAPES), st.sampled_from(list(DRAFTER_SHAPES)), st.sampled_from(list(HEAD_KINDS)), seeds,
    lengths_of_batches, option_values, copying, st.booleans(),
)  # fmt: skip
def test_equals_stock_beam_one(
    drafts: str, shape: str, drafter_shape: str, head_kind: str, seed: int, lengths: list[int],
    options: dict[str, Any], copying: CopyLimits, adaptive: bool,
) -> None:  # fmt: skip
    ours: dict[str, Any] = {"copy_limits": copying, "adaptive_draft": adaptive}
    if drafts == "guesses":
        ours["block_draft"] = None
    drafter = cached_drafter(drafter_shape, seed) if drafts == "a drafter" else None
    if drafts == "heads":
        shape = shape if shape in ENGINE_SHAPES else ENGINE_SHAPES[seed % len(ENGINE_SHAPES)]
        model = cached_blockwise(shape, head_kind, seed % 5)
    else:
        model = cached_model(shape, seed)
    check([model], drafter, random_batch(seed, JOINED, lengths), seed, ours, **options)


def test_prefix_tokens() -> None:
    models, sample = [cached_model("post-norm sinusoidal", 3)], random_batch(3, JOINED, [7, 2, 5, 9])
    prefix = sample["net_input"]["src_tokens"][:, -4:-1].clone()
    check(models, cached_drafter("causal, source copy", 2), sample, 1, {}, prefix_tokens=prefix, min_len=5)


def test_a_drafter_with_fewer_positions_than_the_verifier() -> None:
    models, sample = [cached_model("post-norm learned", 0)], random_batch(0, JOINED, [5, 40, 1])
    check(models, cached_drafter("causal, post-norm learned", 0, positions=9), sample, 2, {}, min_len=20)


def test_separate_dictionaries_and_an_ensemble() -> None:
    models = [cached_model(shape, seed, separate=True) for seed, shape in enumerate(ALL_SHAPES[:2])]
    sample = random_batch(1, OTHER, [5, 9, 2])
    drafter = cached_drafter("causal, source copy", 1, separate=True)
    found = decode(hybrid(models, drafter, src_dict=OTHER), models, sample)
    assert_same_up_to_near_ties(found, stock_beam_one(models, JOINED, sample), models, sample)


@pytest.mark.parametrize("with_heads", [True, False])
def test_fewer_iterations_than_copying_or_drafting_alone(with_heads: bool) -> None:
    """Of batches and their sentences one by one the same ones."""
    totals = {"hybrid": 0, "iad": 0, "alone": 0}
    for seed in range(2):
        model = cached_blockwise("post-norm sinusoidal", "learned", seed)
        models = [model if with_heads else cached_model("post-norm sinusoidal", seed)]
        drafter = None if with_heads else cached_drafter("causal, source copy", seed)
        sample = random_batch(seed, JOINED, [3, 9, 20])
        full: dict[str, Any] = {"shorten_drafts": False}
        _, found = check(models, drafter, sample, seed, full)
        totals["hybrid"] += sum(hypothesis["steps"] for hypothesis in found)
        answers = [hypothesis["tokens"].tolist() for hypothesis in found]
        for row, answer in enumerate(answers):
            net_input = {name: value[row : row + 1] for name, value in sample["net_input"].items()}
            alone = {"id": torch.tensor([0]), "net_input": net_input}
            one = hybrid(models, drafter, CopyingOracleGenerator, answers=[answer], seed=seed, **full)
            assert decode(one, models, alone)[0]["stats"] == found[row]["stats"]
        settings = {"decoding": "iad", "block_draft": None, **full}
        iad = hybrid(models, drafter, CopyingOracleGenerator, answers=answers, seed=seed, **settings)
        decode(iad, models, sample)
        totals["iad"] += iad.totals.iterations
        other = hybrid(models, drafter, decoding="blockwise" if with_heads else "gad", **full)
        decode(other, models, sample)
        totals["alone"] += other.totals.iterations
    assert totals["hybrid"] < totals["iad"]
    assert totals["hybrid"] < totals["alone"]
