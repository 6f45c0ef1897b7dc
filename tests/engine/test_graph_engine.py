"""Passes over buffers that stay where they are, against the engine that allocates anew; uncaptured, on the CPU.

What comes out of whole batches, by trees and under all rules of the search, tests/fuzzing compares with fairseq.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from fairseq_aggdec.decoding.beam.roles import TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Ragged, RowSelection
from fairseq_aggdec.engine import choose_backend
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import GRAPHS
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.graphs.graph_cache import PinnedBuffer
from tests.support.random_models import (
    DRAFTER_SHAPES,
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
    random_blockwise,
    random_drafter,
    texts_of,
)
from tests.support.scripted_decoding import EOS, PAD, UNK

VOCABULARY = dictionary(12)
WORDS = range(VOCABULARY.nspecial, len(VOCABULARY))
CPU = torch.device("cpu")
RULES = SearchRules(PAD, UNK, EOS, max_len=20, min_len=4)
SHAPE = "post-norm sinusoidal"

pytestmark = pytest.mark.usefixtures("no_gradients")


def captured(decoder: Any) -> Decoder:
    return Decoder(decoder, AS_THE_MODEL, GRAPHS)


def as_on_a_gpu(decoder: Any) -> Decoder:
    """An engine whose host waits for the device, and has not seen drafts that are on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_backend, "runs_async", lambda device: True)
        return captured(decoder)


def encoded(model: Any, lengths: list[int], seed: int = 0) -> Any:
    return model.encoder(**random_batch(seed, VOCABULARY, lengths)["net_input"])


def assert_alike(
    found: Any,
    expected: Any,
    ragged: Ragged,
    ranks: int,
) -> None:
    """Equal choices; log-probabilities, and what is said of draft tokens, within rounding."""
    close = partial(torch.testing.assert_close, atol=2e-5, rtol=1e-5)
    assert torch.equal(found.read, expected.read)
    assert torch.equal(found.tokens, expected.tokens)
    close(found.log_probs, expected.log_probs)
    if ranks > 0:
        follows = ragged.rows[1:] == ragged.rows[:-1]
        is_drafted = torch.cat([follows, torch.tensor([False])])
        close(found.drafted[is_drafted], expected.drafted[is_drafted])
        is_drafted &= expected.drafted > -torch.inf
        counts = [
            chosen.ranks[is_drafted].clamp(max=ranks).long()
            for chosen in (found, expected)
        ]
        assert torch.equal(*counts)


class Walk:
    """Gives two verifiers the same random blocks, after which rows grow by any number of tokens."""

    def __init__(
        self,
        found: Any,
        expected: Any,
        seed: int,
        rows: int,
    ) -> None:
        self.both = (found, expected)
        self.rng = random.Random(seed)
        self.starts = [0] * rows
        self.judged: list[tuple[Any, Any, Ragged, int]] = []

    def step(
        self,
        widest: int,
        rules: SearchRules = RULES,
        ranks: int = 0,
        ragged: bool = False,
    ) -> None:
        width = self.rng.randint(1, widest)
        widths = (
            [width, *(self.rng.randint(1, width) for _ in self.starts[1:])]
            if ragged
            else None
        )
        tokens = torch.tensor(self.rng.choices(WORDS, k=len(self.starts) * width)).view(
            -1, width
        )
        block = Block.of(tokens, self.starts, widths)
        found, expected = (
            verifier.verify(block, rules, ranks) for verifier in self.both
        )
        self.judged.append((found, expected, block.ragged, ranks))
        # a pass does not overwrite what the last one has found
        for earlier in self.judged[-2:]:
            assert_alike(*earlier)
        moves = [self.rng.randint(1, wide) for wide in block.ragged.widths]
        self.starts = [
            start + move for start, move in zip(self.starts, moves, strict=True)
        ]

    def keep(self, rows: list[int]) -> None:
        for verifier in self.both:
            verifier.keep(RowSelection(rows, CPU))
        self.starts = [self.starts[row] for row in rows]


@pytest.mark.parametrize("make", [captured, as_on_a_gpu])
@pytest.mark.parametrize("shape", ENGINE_SHAPES[::3])
def test_blocks_are_judged_as_by_the_plain_engine(
    shape: str, make: Callable[[Any], Decoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of_shape(shape, 1, VOCABULARY)
    encoder_out = encoded(model, [5, 9, 2, 7, 1])
    walk = Walk(make(model.decoder), Decoder(model.decoder), 2, 5)
    for verifier in walk.both:
        verifier.start(encoder_out, 1.5)
    walk.step(5)
    walk.step(9, ranks=2)
    walk.keep([0, 4, 2])  # a row takes the place of another
    walk.step(3, ragged=True)
    walk.step(6, ranks=2, ragged=make is captured)
    walk.keep([0, 2])
    with monkeypatch.context() as patch:  # a pass without a graph between others
        patch.setattr("fairseq_aggdec.engine.graphs.runner.MOST_TOKENS", 0)
        walk.step(3)
    walk.keep([1])
    while walk.starts[0] < 21:  # beyond the end that is forced at 20
        walk.step(3, ranks=1)


def test_one_batch_after_another_of_any_size() -> None:
    """Memory of larger batches and of longer outputs is used again, by rows and sources of other buckets."""
    model = model_of_shape(
        SHAPE,
        6,
        VOCABULARY,
        max_target_positions=400,
        max_source_positions=200,
    )
    walk = Walk(captured(model.decoder), Decoder(model.decoder), 0, 1)
    rules = SearchRules(PAD, UNK, EOS, max_len=400)
    for lengths, reached in (
        ([4, 6, 3], 10),
        ([3], 80),
        ([40, 2], 10),
        ([5] * 9, 30),
        ([70], 150),
        ([3, 4], 10),
    ):
        walk.starts = [0] * len(lengths)
        for verifier in walk.both:
            verifier.start(encoded(model, lengths, len(lengths)))
        while walk.starts[0] < reached:
            walk.step(35, rules)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_an_overflow_in_one_batch_does_not_reach_the_next(broken: float) -> None:
    model = model_of_shape(SHAPE, 7, VOCABULARY)
    engine = captured(model.decoder)
    encoder_out = encoded(model, [5, 30])
    encoder_out["encoder_out"][0].fill_(broken)
    engine.start(encoder_out)
    lost = engine.verify(Block.of(torch.full((2, 30), 5), [0, 0]), RULES)
    assert lost.log_probs.isnan().all()
    walk = Walk(engine, Decoder(model.decoder), 8, 2)
    for verifier in walk.both:
        verifier.start(encoded(model, [3, 4]))
    walk.step(3)
    walk.step(3)


@pytest.mark.parametrize(
    "shape, transition_dim",
    [
        *((shape, 0) for shape in [*DRAFTER_SHAPES][::3]),
        ("causal, post-norm learned", 8),
    ],
)
def test_drafts_are_those_of_the_plain_engine(shape: str, transition_dim: int) -> None:
    rng = random.Random(13)
    model = random_drafter(shape, 13, VOCABULARY, 4, transition_dim=transition_dim)
    engines = [
        DraftDecoder(model.decoder, AS_THE_MODEL, GRAPHS),
        DraftDecoder(model.decoder),
    ]
    for rows in (3, 2):
        for engine in engines:
            engine.start(encoded(model, [5, 9, 2][:rows], rows))
        tokens = torch.tensor(rng.choices(WORDS, k=rows * 31)).view(rows, -1)
        lengths = [1] * rows
        for block_size in (4, 3, 4, 4):
            found, expected = (
                engine.draft(texts_of(tokens, lengths), block_size)
                for engine in engines
            )
            assert torch.equal(found, expected)
            assert engines[0]._read == engines[1]._read
            lengths = [length + rng.randint(1, block_size + 1) for length in lengths]
            if len(lengths) == 3:
                tokens, lengths = tokens[[0, 2]], [lengths[0], lengths[2]]
                for engine in engines:
                    engine.keep(RowSelection([0, 2], CPU))


def test_nothing_in_a_pass_is_read_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture forbids it; so does `meta`, a device without numbers, which mixes with no other."""
    meta = torch.device("meta")
    monkeypatch.setattr(PinnedBuffer, "to_host", lambda buffer, numbers: None)
    model = random_blockwise(SHAPE, "learned", 16, VOCABULARY, heads=3).to(meta).half()
    source = torch.full((3, 9), 5, device=meta)
    encoder_out = Encoder(model.encoder, AS_THE_MODEL, GRAPHS)(source)
    engine = captured(model.decoder)
    engine.start(encoder_out)
    # seen by the host, or not
    for device in (CPU, meta):
        draft = torch.full((3, 3), 5, device=device)
        engine.verify(
            Block.of_draft([5] * 3, [0] * 3, draft, None, meta), RULES, ranks=2
        )
    assert engine.proposals is not None
    proposed = engine.proposals.propose([2] * 3, 3)
    assert proposed is not None
    assert proposed.device == meta
    engine.keep(RowSelection([0, 2], meta))
    engine.start(encoder_out)
    tokens = torch.tensor([5, 6, 7])
    slots = torch.zeros(3, 1, dtype=torch.long)
    each = Ragged.of([1] * 3, CPU)
    tree = TreeBlock(tokens, slots[:, 0], 0, 0, slots, 1, each)
    assert list(engine.verify_tree(tree, RULES, 3))
    drafter = random_drafter(
        "causal, post-norm learned", 17, VOCABULARY, 4, transition_dim=8
    )
    drafts = DraftDecoder(drafter.to(meta).half().decoder, AS_THE_MODEL, GRAPHS)
    drafts.start(encoder_out)
    assert drafts.draft([[2]] * 3, 4).device == meta
