"""Copying from the source for one sentence, on examples; that it equals the batched drafter: test_input_guided.py."""

import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.input_guided import FOREIGN, SourceCopyDrafter
from fairseq_aggdec.decoding.single_source import SingleSourceDrafter, SourcesDrafter, align_sentence
from tests.scripted_decoding import EOS, PAD, examples

A, B, C, D = 4, 5, 6, 7


def draft(source: list[int], output: list[int], **options: Any) -> list[int]:
    """What is drafted after the start symbol and an output."""
    begin = options.get("start", EOS)
    proposed, length = SingleSourceDrafter([*source, EOS], EOS, **options).propose(
        torch.tensor([[begin, *output]]), torch.tensor([len(output) + 1])
    )
    assert proposed.shape == (1, int(length))  # no width to spare
    return proposed[0].tolist()


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ([A, B, C], [], [A, B, C, EOS]),  # the start symbol stands before the source
        ([A, B, C], [A, B], [C, EOS]),
        ([A, B, A, C], [A], [B, A, C, EOS]),  # A stands there twice, start and A once
        ([A, B, A, C], [D, A], []),  # neither A nor D A
        ([A, B, A, C], [D, B, A], [C, EOS]),
        ([A, B, A, C], [C], [EOS]),
        ([A, B], [D], []),
    ],
)
def test_the_shortest_suffix_that_occurs_once(source: list[int], output: list[int], expected: list[int]) -> None:
    assert draft(source, output) == expected


def test_options() -> None:
    assert draft([A, B, C], [D, B], min_suffix=2) == []
    assert draft([A, B, C], [A, B], min_suffix=2) == [C, EOS]
    assert draft([A, B, A, C], [A], max_suffix=1) == []  # start and A would be two
    assert draft([A, B, C, D], [A], max_draft_len=2) == [B, C]
    assert draft([A, B], [], start=D) == [A, B, EOS]
    assert draft([A, EOS, B], [A]) == [EOS]  # no further than an EOS, which matches nothing


def test_foreign_tokens_are_neither_drafted_nor_matched() -> None:
    assert draft([A, FOREIGN, B, C], []) == [A]
    assert draft([A, FOREIGN, B, C], [D, B]) == [C, EOS]
    assert draft([FOREIGN, B], []) == []


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([PAD, PAD, A, B, EOS], [A, B, EOS]),
        ([A, B, EOS, PAD], [A, B, EOS]),
        ([A, B], [A, B, EOS]),
        ([PAD, EOS], [EOS]),
        ([PAD, PAD], [EOS]),
    ],
)
def test_aligned(tokens: list[int], expected: list[int]) -> None:
    assert align_sentence(torch.tensor([tokens]), PAD, EOS) == expected


def test_aligned_to_another_dictionary() -> None:
    to_target = torch.tensor([0, 1, 2, 3, 9, FOREIGN, 8])
    assert align_sentence(torch.tensor([[A, B, C, EOS]]), PAD, EOS, to_target) == [9, FOREIGN, 8, EOS]


@examples(60)
@given(
    st.lists(st.lists(st.sampled_from([FOREIGN, *range(4, 9)]), max_size=8), min_size=1, max_size=5),
    st.sampled_from([(1, 0, 0), (2, 0, 0), (1, 2, 0), (1, 0, 3)]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_batch_drafts_as_the_tensors_do(
    sentences: list[list[int]], options: tuple[int, int, int], persists: bool, rng: random.Random
) -> None:
    sources = [[*sentence, EOS] for sentence in sentences]
    width = max(map(len, sources))
    padded = torch.tensor([source + [FOREIGN] * (width - len(source)) for source in sources])
    lengths = torch.tensor(list(map(len, sources)))
    unfinished = [token % 3 == 1 for token in range(9)]
    tensors = SourceCopyDrafter(padded, lengths, EOS, *options, None, persists, torch.tensor(unfinished))
    lists = SourcesDrafter(sources, EOS, *options, None, persists, unfinished)
    for _ in range(4):
        outputs = [[EOS, *rng.choices(range(4, 9), k=rng.randint(0, 6))] for _ in sources]
        known = [len(output) for output in outputs]
        tokens = torch.tensor([output + [7] * (8 - len(output)) for output in outputs])
        expected, expected_lengths = tensors.propose(tokens, torch.tensor(known))
        actual, actual_lengths = lists.propose(tokens, torch.tensor(known), known)
        assert actual_lengths.tolist() == expected_lengths.tolist()
        for row, length in enumerate(actual_lengths.tolist()):
            assert actual[row, :length].tolist() == expected[row, :length].tolist()
        having = actual_lengths.tolist()
        for mine, theirs, length in zip(lists.kinds(), tensors.kinds(), having, strict=True):
            assert mine == theirs or length == 0
        others = torch.tensor([rng.choices(range(4, 9), k=3) for _ in sources])
        other_lengths = torch.tensor([rng.randint(0, 3) for _ in sources])
        joined = tensors.rejoin(tokens, torch.tensor(known), others, other_lengths)
        mine_joined = lists.rejoin(tokens, torch.tensor(known), others, other_lengths, known)
        assert mine_joined[1].tolist() == joined[1].tolist()
        for row, length in enumerate(joined[1].tolist()):
            assert mine_joined[0][row, :length].tolist() == joined[0][row, :length].tolist()
        kept = rng.sample(range(len(sources)), rng.randint(1, len(sources)))
        sources = [sources[row] for row in kept]
        tensors.keep(torch.tensor(kept))
        lists.keep(torch.tensor(kept))
