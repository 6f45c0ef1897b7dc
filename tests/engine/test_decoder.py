"""The block engine and the recomputing verifier against the stock decoder's own full forward pass."""

import random
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Block, RowSelection
from fairseq_aggdec.engine import runner
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.plain.choice import PLAIN
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from tests.support.random_models import (
    ALL_SHAPES,
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
)
from tests.support.scripted_decoding import PAD, examples, scored

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(12)
WORDS = range(VOCABULARY.nspecial, len(VOCABULARY))

WORDS_OF_NO_USE = [WORDS[0]] * 10
# below it, a full pass of fairseq's dynamic convolutions differs from decoding token by token
LONGEST_KERNEL = 5


class Walk:
    """Feeds a verifier what the loop would, at random, and compares every log-probability with the stock decoder's.

    Each row has a text of its own. A block continues it rightly up to a random point and wrongly after it; the row
    then moves on by any number of the right tokens, so that the wrong ones are rolled back.
    """

    def __init__(
        self, shape: str, seed: int, rows: int, left_pad: bool = True, longest: int = 12, **options: Any
    ) -> None:  # fmt: skip
        self.model = model_of_shape(shape, seed, VOCABULARY, **options)
        self.verifier: Any = (
            Decoder(self.model.decoder)
            if shape in ENGINE_SHAPES
            else RecomputeVerifier(self.model, PAD, PLAIN)
        )
        self.rng = random.Random(seed)
        lengths = [self.rng.randint(1, longest) for _ in range(rows)]
        self.sources = random_batch(seed, VOCABULARY, lengths, left_pad)["net_input"]
        self.rows = list(range(rows))
        self.texts = [
            [VOCABULARY.eos(), *self.rng.choices(WORDS, k=400)] for _ in range(rows)
        ]
        self.done = [0] * rows  # tokens read and kept, a row
        self.verifier.start(self.model.encoder(**self.sources))

    @torch.no_grad()
    def step(self, widest: int, ragged: bool = False) -> None:
        width = self.rng.randint(1, widest)
        right = [self.rng.randint(1, width) for _ in self.rows]
        block = [
            self.texts[row][self.done[row] : self.done[row] + count]
            + self.rng.choices(range(len(VOCABULARY)), k=width - count)
            for row, count in zip(self.rows, right, strict=True)
        ]
        starts = [self.done[row] for row in self.rows]
        if ragged:  # the right tokens alone are read
            width = max(right)
            block = [tokens[:width] for tokens in block]
        scores = scored(
            self.verifier,
            torch.tensor(block),
            torch.tensor(starts),
            right if ragged else None,
        )
        assert scores.shape == (len(self.rows), width, len(VOCABULARY))
        if ragged:
            block = [tokens[:count] for tokens, count in zip(block, right, strict=True)]
        scores = scores.log_softmax(-1)
        for number, row in enumerate(self.rows):
            # stock takes a pad for padding; no draft is right after one
            read = (
                block[number][: block[number].index(PAD)]
                if PAD in block[number]
                else block[number]
            )
            expected = self._stock(row, self.texts[row][: starts[number]] + read)[
                starts[number] :
            ]
            # stock itself is up to 4e-5 away from what it computes in double precision
            torch.testing.assert_close(
                scores[number, : len(read)], expected, atol=5e-5, rtol=1e-5
            )
            self.done[row] += self.rng.randint(1, right[number])

    def keep_some(self) -> None:
        """Drop rows at random and shuffle the others."""
        kept = self.rng.sample(
            range(len(self.rows)), self.rng.randint(1, len(self.rows))
        )
        self.rows = [self.rows[number] for number in kept]
        self.verifier.keep(RowSelection(kept, torch.device("cpu")))

    def _stock(
        self,
        row: int,
        read: list[int],
    ) -> Tensor:
        """Log-probabilities after each token of `read`, L x V, from a full pass over this row alone."""
        source = self.sources["src_tokens"][row : row + 1]
        lengths = self.sources["src_lengths"][row : row + 1]
        longer = read + [WORDS[0]] * (LONGEST_KERNEL - len(read))
        output = self.model.decoder(
            torch.tensor([longer]), encoder_out=self.model.encoder(source, lengths)
        )
        return self.model.get_normalized_probs(output, log_probs=True)[0, : len(read)]


@pytest.mark.parametrize("shape", ALL_SHAPES)
@examples(2)
@given(
    st.integers(0, 10_000),
    st.one_of(st.integers(1, 4), st.integers(5, 20)),
    st.booleans(),
    st.booleans(),
)
def test_blocks_equal_the_full_forward_pass(
    shape: str,
    seed: int,
    rows: int,
    left_pad: bool,
    ragged_first: bool,
) -> None:
    """Whole and ragged blocks, between which rows leave."""
    walk = Walk(shape, seed, rows, left_pad)
    for ragged in (ragged_first, not ragged_first, ragged_first):
        walk.step(widest=9, ragged=ragged)
        walk.step(widest=6, ragged=ragged)
        walk.keep_some()
    walk.step(widest=1)


def test_layers_of_one_head_share_a_mask() -> None:
    """Which has the shape of their scores, in so many rows that all are computed at once."""
    one: dict[str, Any] = {
        f"{side}_attention_heads": 1 for side in ("encoder", "decoder")
    }
    walk = Walk("post-norm sinusoidal", 3, rows=20, decoder_layers=3, **one)
    for _ in range(3):
        walk.step(widest=9)


@pytest.mark.parametrize("shape", ENGINE_SHAPES[:2])
@examples(3)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(1, 30),
    st.booleans(),
)
def test_large_blocks_come_in_parts(
    shape: str,
    seed: int,
    rows: int,
    tokens: int,
    ragged: bool,
) -> None:
    walk = Walk(shape, seed, rows)
    with mock.patch.object(runner, "_LOGITS_CHUNK", tokens), torch.no_grad():
        for _ in range(2):
            walk.step(widest=9, ragged=ragged)
        rows = len(walk.rows)
        widths = [9, *[2] * (rows - 1)] if ragged else [9] * rows
        block = Block.of(torch.full((rows, 9), WORDS[0]), walk.done, widths)
        parts = [part.size(0) for part in walk.verifier.score(block)]
    assert sum(parts) == sum(widths)
    assert all(part <= tokens for part in parts)
    assert (len(parts) == 1) == (sum(widths) <= tokens)


@pytest.mark.parametrize(
    "shape, rows, positions",
    [("post-norm sinusoidal", 3, 64), ("no positions", 1, 400)],
)
def test_the_cache_grows(
    shape: str,
    rows: int,
    positions: int,
) -> None:
    """Sources and outputs beyond the sinusoidal positions that were computed ahead, and the cache's first size."""
    walk = Walk(shape, 6, rows, longest=260, max_target_positions=positions)
    walk.verifier.start(Encoder(walk.model.encoder)(walk.sources["src_tokens"]))
    while max(walk.done) < 150:
        walk.step(widest=60)


@pytest.mark.parametrize(
    "shape", ["post-norm learned", "adaptive softmax, learned positions"]
)
def test_padding_of_a_block_may_lie_behind_the_last_position(shape: str) -> None:
    """One row near the model's last position, another with a long draft: the first one's padding has no position."""
    walk = Walk(shape, 0, 2, max_target_positions=16)
    far, near = walk.texts
    with torch.no_grad():
        block = torch.tensor([far[:15], near[:8] + WORDS_OF_NO_USE[:7]])
        scored(walk.verifier, block, torch.tensor([0, 0]))
        block = torch.tensor([far[15:16] + WORDS_OF_NO_USE[:5], near[8:14]])
        scores = scored(walk.verifier, block, torch.tensor([15, 8])).log_softmax(-1)
        for found, expected in (
            (scores[0, :1], walk._stock(0, far[:16])[15:]),
            (scores[1], walk._stock(1, near[:14])[8:]),
        ):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
