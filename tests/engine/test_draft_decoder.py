"""Cached drafting against the drafter's own forward pass, at every prefix length."""

import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.tokens import RowSelection
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.support.random_models import (
    DRAFTER_SHAPES,
    dictionary,
    random_batch,
    random_drafter,
    texts_of,
)
from tests.support.scripted_decoding import PAD, examples

pytestmark = pytest.mark.usefixtures("either_engine", "no_gradients")

VOCABULARY = dictionary(12)
WORDS = range(VOCABULARY.nspecial, len(VOCABULARY))
# fewer symbols than candidates, so that the tables of a transition head decide among all
FEW = dictionary(8)


def check_drafts(
    shape: str,
    seed: int,
    rows: int = 3,
    left_pad: bool = True,
    trained: int = 4,
    block_size: int = 3,
    longest: int = 14,
    dtype: torch.dtype = torch.float64,  # tells a mistake from rounding
) -> None:
    """Rows that advance by one to `block_size` + 1 tokens, some of which leave, until all have `longest`."""
    rng = random.Random(seed)
    model = random_drafter(shape, seed, VOCABULARY, trained).to(dtype)
    within = 1e-5 if dtype == torch.float64 else 1e-4
    sources = random_batch(
        seed, VOCABULARY, [rng.randint(1, 12) for _ in range(rows)], left_pad
    )["net_input"]
    engine = DraftDecoder(model.decoder)
    engine.start(model.encoder(**sources))
    tokens = torch.tensor(rng.choices(WORDS, k=rows * (longest + 1))).view(rows, -1)
    tokens[:, 0] = VOCABULARY.eos()
    lengths = [1] * rows
    kept = torch.arange(rows)
    while kept.numel() and min(lengths) <= longest:
        drafted = engine._scores(texts_of(tokens[kept], lengths), block_size)
        model.block_size = model.decoder.block_size = block_size
        source = {name: value[kept] for name, value in sources.items()}
        junk = tokens[kept].masked_fill(
            torch.arange(longest + 1) >= torch.tensor(lengths)[:, None], PAD
        )
        reading = model.decoder.read(junk, model.encode(**source))
        features = model.decoder.draft(reading, torch.tensor(lengths)[:, None] - 1)[
            :, 0
        ]
        expected = model.decoder.output_layer(features)
        assert drafted.shape == (len(lengths), block_size, len(VOCABULARY))
        torch.testing.assert_close(drafted, expected, atol=within, rtol=within)
        lengths = [
            min(length + rng.randint(1, block_size + 1), longest + 1)
            for length in lengths
        ]
        staying = [row for row in range(len(lengths)) if lengths[row] <= longest]
        if len(staying) < len(lengths) or rng.random() < 0.3:
            rng.shuffle(staying)
            engine.keep(RowSelection(staying, kept.device))
            kept, lengths = kept[staying], [lengths[row] for row in staying]


@pytest.mark.parametrize("shape", DRAFTER_SHAPES)
@examples(2)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.booleans(),
    st.integers(1, 9),
    st.data(),
)
def test_cached_equals_recomputed(
    shape: str,
    seed: int,
    rows: int,
    left_pad: bool,
    trained: int,
    data: st.DataObject,
) -> None:
    block_size = data.draw(st.integers(1, trained))
    check_drafts(shape, seed, rows, left_pad, trained, block_size)


@pytest.mark.parametrize("shape", list(DRAFTER_SHAPES)[::3])
def test_in_single_precision_where_the_kernels_read_masks_with_the_tokens(
    shape: str,
) -> None:
    check_drafts(shape, 3, dtype=torch.float32)


@pytest.mark.parametrize("shape", ["causal, post-norm learned", "bidirectional"])
def test_every_prefix_length_up_to_the_last_position(shape: str) -> None:
    check_drafts(shape, 1, rows=1, trained=1, block_size=1, longest=63)


@pytest.mark.parametrize("shape", ["causal, pre-norm sinusoidal", "bidirectional"])
def test_nothing_is_read_before_a_draft_is_wanted_and_then_of_the_rows_left(
    shape: str,
) -> None:
    model = random_drafter(shape, 4, VOCABULARY, 3).double()
    sources = random_batch(4, VOCABULARY, [5, 2, 9, 7])["net_input"]
    encoded: list[list[int]] = []

    def encode(rows: Any) -> Any:
        encoded.append(rows.tolist())
        return model.encoder(**{name: value[rows] for name, value in sources.items()})

    lazy = DraftDecoder(model.decoder)
    eager = DraftDecoder(model.decoder)
    lazy.start_later(encode)
    eager.start(model.encoder(**sources))
    tokens = torch.randint(VOCABULARY.nspecial, len(VOCABULARY), (4, 9))
    lengths = torch.tensor([2, 4, 6, 1])
    eager.draft(texts_of(tokens, lengths), 3)
    for kept in ([3, 0, 2], [2, 0]):  # left: rows 2 and 3 of the batch
        index = torch.tensor(kept)
        tokens, lengths = tokens[index], lengths[index] + 1
        lazy.keep(RowSelection(kept, index.device))
        eager.keep(RowSelection(kept, index.device))
    assert encoded == []
    for _ in range(2):
        scores, expected = (
            engine._scores(texts_of(tokens, lengths), 3) for engine in (lazy, eager)
        )
        torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)
        assert encoded == [[2, 3]]
        lengths = lengths + 1


def by_a_walk(
    model: NarDrafterModel,
    features: Tensor,
    last: int,
) -> tuple[list[int], Tensor]:
    """Tokens of one block (k x D) after `last`, by a transition head over all words, and their logits, k x V."""
    decoder = model.decoder
    tokens = [last]
    rows = []
    for feature in features:
        logits = decoder.output_layer(
            decoder.transitions(feature, decoder.embed(torch.tensor(tokens[-1])))
        )
        rows.append(logits.clone())
        tokens.append(int(decoder.best_tokens(logits)))
    return tokens[1:], torch.stack(rows)


@pytest.mark.parametrize("shape", ["causal, pre-norm sinusoidal", "bidirectional"])
def test_each_token_is_the_best_after_the_one_before(shape: str) -> None:
    differ = 0
    for seed, rows in enumerate((1, 3, 3)):
        model = random_drafter(shape, seed, FEW, 5, transition_dim=6)
        source = random_batch(
            seed,
            FEW,
            [4, 7, 2][:rows],
        )["net_input"]
        tokens = torch.randint(FEW.nspecial, len(FEW), (rows, 9))
        tokens[:, 0] = FEW.eos()
        lengths = torch.tensor([3, 1, 6][:rows])
        drafter = DraftDecoder(model.decoder)
        scorer = DraftDecoder(model.decoder)
        for engine in (drafter, scorer):
            engine.start(model.encoder(**source))
        drafted = drafter.draft(texts_of(tokens, lengths), 5)
        logits = scorer._scores(texts_of(tokens, lengths), 5)
        reading = model.decoder.read(tokens, model.encode(**source))
        features = model.decoder.draft(reading, lengths[:, None] - 1)[:, 0]  # B x k x D
        for row in range(rows):
            expected, scores = by_a_walk(
                model, features[row], int(tokens[row, lengths[row] - 1])
            )
            assert drafted[row].tolist() == expected
            torch.testing.assert_close(logits[row], scores, atol=1e-4, rtol=1e-4)
            differ += (
                expected
                != model.decoder.best_tokens(
                    model.decoder.output_layer(features[row])
                ).tolist()
            )
    assert differ > 0, "the head changes some of the drafts"
