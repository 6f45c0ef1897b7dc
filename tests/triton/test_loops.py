"""Loops on the device give the records of the loops on the host, and beams fairseq's n-best lists; kernels interpreted.

But for one test, passes are PyTorch's operations in single precision, which take less time here.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pytest
import torch

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs import buffers
from fairseq_aggdec.engine.graphs.graph_cache import Graph
from fairseq_aggdec.engine.loops import beams, loop
from fairseq_aggdec.generation import beam_generator, generator
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import COPY_RULES
from tests.support.oracle import by_fairseq
from tests.support.random_models import (
    dictionary,
    model_of_shape,
    random_batch,
    random_drafter,
    share_encoder,
)
from tests.support.small_generators import tokens

WORDS = dictionary(20)
FEW = dictionary(5)
SHAPE = "post-norm sinusoidal"
LEARNED = "pre-norm learned, layernorm_embedding"
TOLD = "post-norm learned"
ONE_LAYER: Any = {"encoder_layers": 1, "decoder_layers": 1}
BATCHES = {1: [6], 3: [3, 6, 1], 8: [4, 7, 2, 5, 1, 3, 6, 2]}
RARE = 0.05
OFTEN = 0.2
NEVER = 0.0
"""shares of positions at which EOS is the best token"""

HOSTS_LOOPS = [
    (generator, "draft_verify_accept"),
    (beam_generator, "plain_beam_search"),
    (beam_generator, "aggressive_beam_search"),
]


@pytest.fixture(autouse=True)
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Graph]]:
    """Loops on the device are on; the passes that they have repeated."""
    monkeypatch.setenv("AGGDEC_BACKEND", "cuda")
    monkeypatch.setenv("AGGDEC_GPU", "loops")
    repeated: list[Graph] = []
    repeat = loop.repeat

    def noted(graphs: Any, graph: Graph, most: int) -> None:
        repeated.append(graph)
        repeat(graphs, graph, most)

    monkeypatch.setattr(loop, "repeat", noted)
    yield repeated
    loop.failures.clear()


def drawn(
    seed: int,
    lengths: list[int],
    share: float = RARE,
    shape: str = SHAPE,
    words: Any = WORDS,
    **sizes: Any,
) -> Any:
    """A random model, and a batch of sources of these lengths."""
    return model_of_shape(
        shape, seed, words, share, **ONE_LAYER, **sizes
    ), random_batch(seed, words, lengths)


def made(
    model: Any,
    mode: str,
    words: Any = WORDS,
    kind: Any = AggressiveGenerator,
    **options: Any,
) -> AggressiveGenerator:
    # a CPU verifies fewer drafts
    own: dict[str, Any] = {"drafts": "whole"} if mode in ("iad", "gad") else {}
    if mode == "aggressive-beam":
        kind = AggressiveBeamGenerator
        own = {"beam_size": 2, "budget": 0}
    options = {"max_len_a": 0, "max_len_b": 6, "keep_drafts": False, **own, **options}
    return kind.of([model], words, src_dict=words, decoding=mode, **options)


def alike(
    model: Any,
    words: Any,
    shape: str = TOLD,
    block_size: int = 4,
    seed: int = 1,
    **options: Any,
) -> Any:
    """Options of `gad`: a drafter with a model's weights, whose masks read what the model reads one position earlier.

    It knows most tokens of a model that is `told` them. `seed`: of the weights that the model does not have.
    """
    drafter = random_drafter(
        f"causal, {shape}", seed, words, block_size, **{**ONE_LAYER, **options}
    )
    weights = {
        name: own
        for name, own in model.state_dict().items()
        if "embed_positions" not in name
    }
    with torch.no_grad():
        drafter.load_state_dict(weights, strict=False)
        drafter.decoder.mask_embedding.zero_()
        if "learned" in shape:
            places = drafter.decoder.embed_positions.weight
            places[1:] = model.decoder.embed_positions.weight[: len(places) - 1]
    return BlockDraftOptions(LoadedDrafter(drafter), block_size)


@torch.no_grad()
def told(model: Any) -> Any:
    """A model whose outputs depend on the source and on positions more than on the tokens before."""
    model.decoder.embed_tokens.weight *= 0.2
    model.decoder.layers[0].self_attn.out_proj.weight *= 0.2
    return model


def records(found: Any) -> list[Any]:
    """All of each hypothesis but its scores."""
    return [
        (one["tokens"].tolist(), one["steps"], vars(one["stats"]))
        for n_best in found
        for one in n_best
    ]


def on_the_host(decoder: AggressiveGenerator, sample: Any, passes: list[Graph]) -> Any:
    count = len(passes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGGDEC_GPU", "")
        found = decoder.generate([], sample)
    assert len(passes) == count
    return found


def decoded_twice(
    decoder: AggressiveGenerator,
    sample: Any,
    passes: list[Graph],
) -> Any:
    """A batch decoded on the device, which gives the records of the host and, within rounding, its scores."""
    count = len(passes)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in HOSTS_LOOPS:
            patch.delattr(module, name)
        found = decoder.generate([], sample)
    assert len(passes) > count, "no loop on the device has decoded"
    expected = on_the_host(decoder, sample, passes)
    assert records(found) == records(expected)
    for name in ("score", "positional_scores"):
        both = (
            [one[name].view(-1) for n_best in lists for one in n_best]
            for lists in (found, expected)
        )
        torch.testing.assert_close(*map(torch.cat, both), rtol=1e-4, atol=1e-4)
    return found


def edited(texts: Sequence[Sequence[int]], words: Any, seed: int) -> list[list[int]]:
    """Texts in which some tokens are replaced, and some left out."""
    rng = random.Random(seed)
    ordinary = range(words.nspecial, len(words))
    kept = [[token for token in text if rng.random() < 0.9] for text in texts]
    return [
        [rng.choice(ordinary) if rng.random() < 0.2 else token for token in text]
        for text in kept
    ]


@pytest.mark.parametrize(
    "rows, words, shape, share",
    [
        (1, WORDS, SHAPE, RARE),
        (3, WORDS, SHAPE, RARE),
        (3, FEW, LEARNED, RARE),
        (8, FEW, LEARNED, NEVER),
    ],
)
def test_copies_are_found_and_accepted_as_on_the_host(
    rows: int, words: Any, shape: str, share: float, passes: list[Graph]
) -> None:
    """With few words most suffixes of an output stand several times in the source. Where EOS is never the best token,
    outputs are as long as they may be, and the model knows no position after them."""
    accepted = 0
    for seed in range(2):
        model, sample = drawn(
            seed, BATCHES[rows], share, shape, words, max_target_positions=13
        )
        limits = {"min_len": 3 * seed, "max_len_b": 12}
        greedy = decoded_twice(made(model, "greedy", words, **limits), sample, passes)
        sample["drafts"] = edited(
            [one["tokens"].tolist()[:-1] for (one,) in greedy], words, seed
        )
        for copies in COPY_RULES:
            decoder = made(
                model, "iad", words, max_draft_len=seed * 3, copies=copies, **limits
            )
            found = decoded_twice(decoder, sample, passes)
            accepted += sum(sum(one["stats"].accepted) for (one,) in found)
    assert accepted > 4 * rows


@pytest.mark.parametrize(
    "rows, words, options",
    [
        (1, WORDS, {"max_target_positions": 9}),
        (3, WORDS, {"prefix_attention": "bidirectional"}),
        (3, FEW, {"transition_dim": 8}),
        (8, FEW, {"block_size": 5}),
    ],
)
def test_drafts_of_a_model_are_accepted_as_on_the_host(
    rows: int, words: Any, options: Any, passes: list[Graph]
) -> None:
    """Drafts end by EOS, where an output must end, or where the drafter knows no further position."""
    are_whole = set[bool]()
    accepted = 0
    for seed, share in ((1, OFTEN), (2, NEVER)):
        model, sample = drawn(seed, BATCHES[rows], share, TOLD, words)
        drafts = alike(told(model), words, **options)
        if seed == 2:
            share_encoder(drafts.drafter.model, model)
        found = decoded_twice(
            made(model, "gad", words, block_draft=drafts, max_len_b=12), sample, passes
        )
        for (one,) in found:
            after = accumulate(one["stats"].committed, initial=1)
            for drafted, length in zip(one["stats"].drafted, after, strict=False):
                are_whole.add(drafted == min(drafts.block_size, 13 - length))
            accepted += sum(one["stats"].accepted)
    assert accepted > 2 * rows
    assert are_whole == {True, False}


@pytest.mark.parametrize("size, rows", [(1, 3), (4, 8), (5, 1), (5, 3), (6, 1)])
def test_beams_end_as_on_the_host(size: int, rows: int, passes: list[Graph]) -> None:
    """Of six, a row of a pass has room for eight."""
    model, sample = drawn(size, BATCHES[rows], share=OFTEN)
    found = decoded_twice(
        made(model, "aggressive-beam", beam_size=size, min_len=2), sample, passes
    )
    stock = by_fairseq([model], WORDS, sample, size, max_len_b=6, min_len=2)
    assert tokens(found) == tokens(stock)


@pytest.mark.parametrize("mode", ["iad", "gad", "aggressive-beam"])
def test_rows_leave_and_states_grow(
    mode: str, passes: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state has room for 8 positions at first; a pass has the rows that are left."""
    monkeypatch.setattr(buffers, "_POSITIONS", 8)
    monkeypatch.setattr(beams, "_STEPS", 8)
    monkeypatch.setattr(buffers, "_SOURCE", 4)
    model, sample = drawn(5, [2, 1, 2, 1, 1], share=OFTEN)
    block_draft = alike(model, WORDS, SHAPE, 2) if mode == "gad" else None
    decoded_twice(
        made(model, mode, max_len_b=15, block_draft=block_draft), sample, passes
    )
    sizes = [int(graph.name.split(" x ")[0].split()[-1]) for graph in passes]
    assert sizes[0] == 8 > sizes[-1]  # rows
    assert (
        len(
            {
                graph.inputs[0].numel() / size
                for graph, size in zip(passes, sizes, strict=True)
            }
        )
        > 1
    )


def test_a_sentence_that_has_ended_writes_into_no_other_one(
    passes: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ends near the end of its memory, and its last block, which is read on, is longer than what is left."""
    monkeypatch.setattr(buffers, "_POSITIONS", 8)
    monkeypatch.setattr(buffers, "_SOURCE", 4)
    model, sample = drawn(1, [2, 1, 2, 1], OFTEN, TOLD)
    told(model)
    limits = {"max_len_b": 24, "min_len": 17}
    first = tokens(by_fairseq([model], WORDS, sample, **limits))[0][0][:-1]
    sample["drafts"] = [
        (first[:8] + first[9:])[-14:],
        *([word] * 14 for word in (5, 6, 7)),
    ]
    decoded_twice(made(model, "iad", **limits), sample, passes)


def test_rules_and_sources_of_one_batch_are_not_those_of_the_next(
    passes: list[Graph],
) -> None:
    """Generators share an engine, and so its graphs."""
    model, sample = drawn(4, BATCHES[3], share=OFTEN)
    engines = Engines()
    found = []
    for options in ({}, {"min_len": 6}, {"max_len_b": 3}, {"temperature": 2.0}):
        decoder = made(model, "greedy", engines=engines, **options)
        found.append(tokens(decoded_twice(decoder, sample, passes)))
    assert found[0] != found[1] != found[2]
    for drafts in ([], [[5, 6] * 20]):
        decoded_twice(
            made(model, "iad", engines=engines), {**sample, "drafts": drafts}, passes
        )
    for seed in (1, 2):
        drafts = alike(model, WORDS, SHAPE, seed=seed, transition_dim=8)
        decoded_twice(
            made(model, "gad", engines=engines, block_draft=drafts), sample, passes
        )
    for options in ({}, {"temperature": 2.0}):
        decoded_twice(
            made(model, "aggressive-beam", engines=engines, max_len_b=3, **options),
            sample,
            passes,
        )


@pytest.mark.parametrize(
    "options, prefix",
    [
        ({"unk_penalty": 1.0}, None),
        ({"tokens_to_suppress": ["w3"]}, None),
        ({}, torch.tensor([[5], [6], [7]])),
    ],
)
@pytest.mark.parametrize("mode", ["iad", "aggressive-beam"])
def test_rules_that_no_graph_knows_are_the_hosts(
    mode: str, options: Any, prefix: Any, passes: list[Graph]
) -> None:
    model, sample = drawn(1, BATCHES[3])
    made(model, mode, **options).generate([], sample, prefix_tokens=prefix)
    assert passes == []


@pytest.mark.parametrize("mode", ["iad", "aggressive-beam"])
def test_a_batch_with_nan_is_decoded_again_on_the_host(
    mode: str, passes: list[Graph]
) -> None:
    """A draft token that overflows spoils its block, and a hypothesis that overflows its sentence; not the output."""
    model, sample = drawn(2, BATCHES[3])
    spoiling = 9
    sample["drafts"] = [[spoiling, 8], [7], [spoiling]]
    with torch.no_grad():
        model.decoder.embed_tokens.weight[spoiling] = torch.inf
        model.decoder.output_projection.weight[spoiling] *= (
            0.0 if mode == "iad" else 1.0
        )
    decoder = made(model, mode, beam_size=3 if mode == "aggressive-beam" else 1)
    found = decoder.generate([], sample)
    assert passes
    assert tokens(found) == tokens(on_the_host(decoder, sample, passes))


def test_a_loop_that_fails_begins_again_on_the_host(
    passes: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When rows have left, and the drafter has begun."""
    model, sample = drawn(1, BATCHES[8], OFTEN, TOLD)
    decoder = made(model, "gad", block_draft=alike(told(model), WORDS))
    repeat = loop.repeat

    def broken(*arguments: Any) -> None:
        repeat(*arguments)
        if len(passes) > 1:
            raise RuntimeError("lost")

    monkeypatch.setattr(loop, "repeat", broken)
    found = decoder.generate([], sample)
    assert len(passes) == 2
    assert records(found) == records(on_the_host(decoder, sample, passes))
