"""Passes over buffers that stay where they are, against the engine that allocates anew; uncaptured, on the CPU.

What comes out of whole batches, by trees and under all rules of the search, tests/fuzzing compares with fairseq.
"""

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fairseq_aggdec.decoding.beam.roles import TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Ragged, RowSelection
from fairseq_aggdec.engine import choose_backend, runner
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import GRAPHS
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.graphs import buffers
from fairseq_aggdec.engine.graphs.graph_cache import Graph, GraphCache, PinnedBuffer
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.loops.rows import draft_on_device
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

VOCABULARY = dictionary(12)
WORDS = range(VOCABULARY.nspecial, len(VOCABULARY))
CPU = torch.device("cpu")
RULES = SearchRules(
    pad=VOCABULARY.pad(),
    unk=VOCABULARY.unk(),
    eos=VOCABULARY.eos(),
    max_len=20,
    min_len=4,
)
SHAPE = "post-norm sinusoidal"


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.mark.parametrize(
    ("memory", "moves"), [(math.inf, [1, 1, 0, 0]), (0, [1, 1, 1, 0])]
)
def test_buffers_that_suffice_are_kept_and_grow_within_a_share_of_the_memory(
    memory: float, moves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they move, all graphs are captured anew. Two batches, of many and of long sources; then both once more."""
    moved: list[int] = []
    monkeypatch.setattr(buffers, "memory_of", lambda device: memory)
    cache = buffers.StaticCache(1, 2, 8, moved.append)
    found = []
    for rows, length in ((8, 20), (4, 40), (8, 20), (3, 19)):
        before = len(moved)
        cache.start_with(rows, length, torch.zeros(1))
        found.append(len(moved) - before)
    assert found == moves


def captured(decoder: Any) -> Decoder:
    return Decoder(decoder, AS_THE_MODEL, GRAPHS)


def as_on_a_gpu(decoder: Any) -> Decoder:
    """An engine whose host waits for the device, and has not seen drafts that are on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_backend, "runs_async", lambda device: True)
        return captured(decoder)


def encoded(model: Any, lengths: list[int], seed: int = 0) -> Any:
    return model.encoder(**random_batch(seed, VOCABULARY, lengths)["net_input"])


def assert_alike(found: Any, expected: Any, ragged: Ragged, ranks: int) -> None:
    """Equal choices; log-probabilities, and what is said of draft tokens, within rounding."""
    assert torch.equal(found.read, expected.read)
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(
        found.log_probs, expected.log_probs, atol=2e-5, rtol=1e-5
    )
    if ranks > 0:
        is_drafted = torch.cat(
            [ragged.rows[1:] == ragged.rows[:-1], torch.tensor([False])]
        )
        torch.testing.assert_close(
            found.drafted[is_drafted],
            expected.drafted[is_drafted],
            atol=2e-5,
            rtol=1e-5,
        )
        is_drafted &= expected.drafted > -torch.inf
        counts = [
            chosen.ranks[is_drafted].clamp(max=ranks).long()
            for chosen in (found, expected)
        ]
        assert torch.equal(*counts)


class Walk:
    """Gives two verifiers the same random blocks, behind which rows go on by any number of tokens."""

    def __init__(self, found: Any, expected: Any, seed: int, rows: int) -> None:
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
        sequence = None
        if rules.no_repeat_ngram_size:
            texts = [self.rng.choices(WORDS, k=start + 1) for start in self.starts]
            sequence = block.sequence(texts, rules.pad)
        found, expected = (
            verifier.verify(block, rules, ranks, sequence) for verifier in self.both
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
@pytest.mark.parametrize("shape", ENGINE_SHAPES[::2])
def test_blocks_are_judged_as_by_the_plain_engine(
    shape: str, make: Callable[[Any], Decoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of_shape(shape, 1, VOCABULARY, VOCABULARY)
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


@pytest.mark.parametrize("make", [captured, as_on_a_gpu])
@pytest.mark.parametrize("ranks", [0, 2])
def test_a_forced_beginning_is_chosen_in_the_graph(
    make: Any, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first block has it before the draft, as `Outputs.unread` gives it."""
    model = model_of_shape(SHAPE, 4, VOCABULARY, VOCABULARY)
    both, prefix = (
        (make(model.decoder), Decoder(model.decoder)),
        torch.tensor([[5, 9], [8, 6]]),
    )
    for verifier in both:
        verifier.start(encoded(model, [4, 8]))
    rules = dataclasses.replace(RULES, prefix=prefix)
    block = Block.of_draft(
        [2, 2],
        [0, 0],
        torch.cat([prefix, torch.tensor([[4, 7], [5, 5]])], dim=1),
        None,
        CPU,
    )
    expected = both[1].verify(block, rules, ranks)
    monkeypatch.setattr(runner, "choose_block", None)
    found = both[0].verify(block, rules, ranks)
    # how a forced token would be judged does not matter
    assert_alike(found, expected, block.ragged, ranks=0)
    assert (found.ranks is None) == (ranks == 0)


def test_one_batch_after_another_of_any_size() -> None:
    """Memory of larger batches and of longer outputs is used again, by rows and sources of other buckets."""
    model = model_of_shape(
        SHAPE,
        6,
        VOCABULARY,
        VOCABULARY,
        max_target_positions=400,
        max_source_positions=200,
    )
    walk = Walk(captured(model.decoder), Decoder(model.decoder), 0, 1)
    rules = SearchRules(pad=1, unk=3, eos=2, max_len=400)
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


def test_graphs_outlive_a_batch_where_its_memory_stays() -> None:
    model = model_of_shape(SHAPE, 6, VOCABULARY, VOCABULARY, max_target_positions=16)
    engine = captured(model.decoder)
    assert isinstance(engine.runner, Graphs)
    graphs = engine.runner.cache
    table: Any = engine.parts.positions
    rules = SearchRules(pad=1, unk=3, eos=2, max_len=400)

    def passes(start: int = 0) -> tuple[list[int], set[Graph]]:
        """Where the memory and the embeddings of positions are, and the passes over them."""
        engine.verify(Block.of(torch.full((1, 3), 5), [start]), rules)
        memory = (
            engine.eager.memory.cache.memory,
            engine.eager.memory.cross,
            table.reaching(1),
        )
        return [x.data_ptr() for x in memory], set(graphs._graphs.values())

    engine.start(encoded(model, [5, 9, 4]))
    engine.keep(RowSelection([1], CPU))
    first = passes()
    for lengths, fits in (([3], True), ([30], True), ([30, 2, 4, 4, 70], False)):
        engine.start(encoded(model, lengths))
        engine.keep(RowSelection([0], CPU))
        now = passes()
        assert (now[0] == first[0] and now[1] >= first[1]) == fits
    further = passes(150)  # in the memory that the longest source has asked for
    assert further[0] == now[0]
    assert further[1] > now[1]
    later = passes(300)
    assert later[0] != now[0]
    assert not later[1] & further[1]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_an_overflow_in_one_batch_does_not_reach_the_next(broken: float) -> None:
    model = model_of_shape(SHAPE, 7, VOCABULARY, VOCABULARY)
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
    ("shape", "transition_dim"),
    [
        *((shape, 0) for shape in [*DRAFTER_SHAPES][::3]),
        ("causal, post-norm learned", 8),
    ],
)
def test_drafts_are_those_of_the_plain_engine(shape: str, transition_dim: int) -> None:
    rng = random.Random(13)
    model = random_drafter(
        shape, 13, VOCABULARY, VOCABULARY, 4, transition_dim=transition_dim
    )
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


@pytest.mark.parametrize(
    "shape",
    ["causal, post-norm sinusoidal", "causal, post-norm learned", "bidirectional"],
)
def test_a_draft_inside_a_loop_on_the_device_is_that_of_the_host(shape: str) -> None:
    """Beside a text that has ended, at the end of its memory."""
    rng, k, capacity = random.Random(14), 4, 64
    model = random_drafter(
        shape,
        14,
        VOCABULARY,
        VOCABULARY,
        k,
        transition_dim=8 if "learned" in shape else 0,
    )
    engines = [
        DraftDecoder(model.decoder, AS_THE_MODEL, GRAPHS),
        DraftDecoder(model.decoder),
    ]
    for engine in engines:
        engine.start(encoded(model, [5, 9, 2, 4]))
        engine.begin()
    tokens = torch.tensor(rng.choices(WORDS, k=4 * capacity)).view(4, -1)
    lengths, going = [1, capacity, 1, 1], [0, 2, 3]
    in_a_loop = draft_on_device(engines[0], capacity, k)
    assert in_a_loop is not None
    while max(lengths[row] for row in going) < capacity - k:
        ends = torch.tensor(lengths)[:, None]
        found = in_a_loop.tokens(tokens, ends, tokens.gather(1, ends - 1))
        assert torch.equal(
            found[going], engines[1].draft(texts_of(tokens, lengths), k)[going]
        )
        lengths = [min(capacity, length + rng.randint(1, k + 1)) for length in lengths]


def test_nothing_in_a_pass_is_read_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture forbids it; so does `meta`, a device without numbers, which mixes with no other."""
    meta = torch.device("meta")
    monkeypatch.setattr(PinnedBuffer, "to_host", lambda buffer, numbers: None)
    model = (
        random_blockwise(SHAPE, "learned", 16, VOCABULARY, VOCABULARY, heads=3)
        .to(meta)
        .half()
    )
    encoder_out = Encoder(model.encoder, AS_THE_MODEL, GRAPHS)(
        torch.full((3, 9), 5, device=meta)
    )
    engine = captured(model.decoder)
    engine.start(encoder_out)
    # seen by the host, or not
    for draft in (torch.full((3, 3), 5), torch.full((3, 3), 5, device=meta)):
        engine.verify(
            Block.of_draft([5] * 3, [0] * 3, draft, None, meta), RULES, ranks=2
        )
    assert engine.proposals is not None
    proposed = engine.proposals.propose([2] * 3, 3)
    assert proposed is not None
    assert proposed.device == meta
    engine.keep(RowSelection([0, 2], meta))
    engine.start(encoder_out)
    tokens, slots = torch.tensor([5, 6, 7]), torch.zeros(3, 1, dtype=torch.long)
    assert next(
        iter(
            engine.verify_tree(
                TreeBlock(tokens, slots[:, 0], 0, 0, slots, 1, Ragged.of([1] * 3, CPU)),
                RULES,
                3,
            )
        )
    )
    drafter = random_drafter(
        "causal, post-norm learned", 17, VOCABULARY, VOCABULARY, 4, transition_dim=8
    )
    drafts = DraftDecoder(drafter.to(meta).half().decoder, AS_THE_MODEL, GRAPHS)
    drafts.start(encoder_out)
    assert drafts.draft([[2]] * 3, 4).device == meta
    in_a_loop, texts = (
        draft_on_device(drafts, 64, 4),
        torch.zeros(4, 64, dtype=torch.long, device=meta),
    )
    assert in_a_loop is not None
    assert in_a_loop.tokens(texts, texts[:, :1], texts[:, :1]).device == meta


def test_a_batch_begins_with_few_operations_beside_its_graphs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each costs a GPU's host 5 to 10 us. The decoder's start reads what the encoder's graph has left where it is."""
    model = model_of_shape(SHAPE, 3, VOCABULARY, VOCABULARY)
    encoder, engine = (
        Encoder(model.encoder, AS_THE_MODEL, GRAPHS),
        captured(model.decoder),
    )
    tokens = random_batch(3, VOCABULARY, [5, 9, 2])["net_input"]["src_tokens"]
    engine.start(encoder(tokens))  # graphs are made
    run, outside = GraphCache.run, list[str]()
    views = {
        "aten.view",
        "aten.slice",
        "aten.select",
        "aten.transpose",
        "aten.unflatten",
        "aten.detach",
        "aten.alias",
    }

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: Any = (), options: Any = None
        ) -> Any:
            if str(function.overloadpacket) not in views:
                outside.append(str(function))
            return function(*arguments, **(options or {}))

    def uncounted(self: GraphCache, graph: Graph) -> None:
        with _disable_current_modes():
            run(self, graph)

    monkeypatch.setattr(GraphCache, "run", uncounted)
    with Counting():
        engine.start(encoder(tokens))
    assert outside == ["aten.fill_.Scalar", "aten.copy_.default"]
