"""Input-guided drafting against a direct transcription of papers/000 Algorithm 1, line 3."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.drafters.input_guided import (
    FOREIGN,
    MAX_KIND,
    SourceCopyDrafter,
    SourceMatcher,
    align_source,
)
from fairseq_aggdec.decoding.tokens import Order
from tests.support.scripted_decoding import EOS, PAD, UNK, examples, outputs_of

BOS_MARK = "<start>"  # o_0 = x_0 of Algorithm 1
A, B, C, D = 4, 5, 6, 7

tokens = st.integers(A, C)  # few different ones: suffixes repeat
source_tokens = st.sampled_from([A, A, B, B, C, C, EOS, FOREIGN, UNK])
texts = st.lists(source_tokens, max_size=9)


def slow_match(source: list[int], output: list[int]) -> int | None:
    """Position i of x = (start, source) where the shortest suffix of (start, output) that occurs once in x ends."""
    x: list[object] = [BOS_MARK, *source]
    o: list[object] = [BOS_MARK, *output]
    for size in range(1, len(o) + 1):
        suffix = o[len(o) - size :]
        if FOREIGN in suffix:
            return None
        ends = [end for end in range(size - 1, len(x)) if x[end - size + 1 : end + 1] == suffix]
        if len(ends) == 1:
            return ends[0]
        if not ends:
            return None
    return None


def slow_draft(source: list[int], output: list[int], max_draft_len: int) -> list[int]:
    """The source behind the match, EOS after it; no further than an EOS or a token that the target does not have."""
    match = slow_match(source, output)
    if match is None:
        return []
    draft = []
    for token in [*source, EOS][match:]:
        if token == FOREIGN:
            break
        draft.append(token)
        if token == EOS:
            break
    return draft[:max_draft_len] if max_draft_len > 0 else draft


@examples(150)
@given(texts, st.lists(tokens, max_size=12), st.sampled_from([0, 0, 1, 3, 5]), st.randoms(use_true_random=False))
def test_drafts_follow_the_shortest_unique_suffix(
    source: list[int], output: list[int], longest: int, rng: random.Random
) -> None:
    """While the output grows by some tokens at a time."""
    matcher = SourceMatcher([*source, EOS], EOS, None, longest)
    for end in range(len(output) + 1):
        if rng.random() < 0.6 or end == len(output):
            draft, kind = matcher.copy([EOS, *output[:end]], end == 0)
            assert draft == slow_draft(source, output[:end], longest)
            assert kind <= min(end + 1, MAX_KIND)


def test_rows_draft_by_themselves_and_can_be_dropped_and_reordered() -> None:
    drafter = SourceCopyDrafter([SourceMatcher([*source, EOS], EOS) for source in ([A, B], [B, C, D], [C], [D])])
    draft = drafter.propose(outputs_of([[A], [C], [], [A]]), [9] * 4)
    assert draft.lengths == [2, 2, 2, 0]
    assert draft.tokens[:3].tolist() == [[B, EOS], [D, EOS], [C, EOS]]
    assert draft.kinds == [2, 1, 1, 0]
    drafter.keep(Order([2, 1], torch.device("cpu")))
    assert drafter.propose(outputs_of([[C], [C, D]]), [9] * 2).tokens.tolist() == [[EOS], [EOS]]


@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([A, B, C, EOS], [A, B, C, EOS]),
        ([EOS], [EOS]),
        ([A, B], [A, B, EOS]),  # an EOS that was missing
        ([], [EOS]),
        ([A, PAD, EOS, B, EOS], [A, PAD, EOS, B, EOS]),  # special symbols inside the text
        ([EOS, EOS, EOS], [EOS, EOS, EOS]),
    ],
)
def test_sources_without_their_padding(tokens: list[int], expected: list[int], left_pad: bool) -> None:
    padding = [PAD] * (6 - len(tokens))
    row = [*padding, *tokens] if left_pad else [*tokens, *padding]
    assert align_source(torch.tensor([[A, B, C, D, A, EOS], row]), PAD, EOS) == [[A, B, C, D, A, EOS], expected]


def test_sources_of_another_dictionary() -> None:
    to_target = [0, 1, 2, 3, C, FOREIGN, A, FOREIGN]  # A is C, B unknown, C is A, D unknown
    source = torch.tensor([[PAD, A, B, C, EOS], [UNK, D, A, C, EOS]])
    assert align_source(source, PAD, EOS, to_target) == [[C, FOREIGN, A, EOS], [UNK, FOREIGN, C, A, EOS]]
