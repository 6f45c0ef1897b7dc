"""Input-guided drafting against direct transcriptions of papers/000 Algorithm 1, line 3, and of our rule."""

import random
import sys
import time
from collections.abc import Sequence
from itertools import takewhile
from operator import eq

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.drafters.input_guided import (
    FOREIGN,
    GUESS,
    MAX_KIND,
    SourceCopyDrafter,
    SourceMatcher,
    align_source,
)
from fairseq_aggdec.decoding.tokens import RowSelection
from tests.support.random_models import texts_of
from tests.support.scripted_decoding import EOS, PAD, UNK, examples, outputs_of

BOS_MARK = "<start>"  # o_0 = x_0 of Algorithm 1
A = 4
B = 5
C = 6
D = 7

tokens = st.integers(A, C)  # few different ones: suffixes repeat
source_tokens = st.sampled_from([A, A, B, B, C, C, EOS, FOREIGN, UNK])
texts = st.lists(source_tokens, max_size=9)


def ends_of(size: int, source: list[int], output: list[int]) -> list[int]:
    """Where the last `size` of (start, output) end in x = (start, source)."""
    x: list[object] = [BOS_MARK, *source]
    suffix = [BOS_MARK, *output][1 + len(output) - size :]
    if FOREIGN in suffix:
        return []
    return [
        end for end in range(size - 1, len(x)) if x[end - size + 1 : end + 1] == suffix
    ]


def slow_match(source: list[int], output: list[int]) -> int | None:
    """Position i of x = (start, source) where the shortest suffix of (start, output) that occurs once in x ends."""
    for size in range(1, len(output) + 2):
        ends = ends_of(size, source, output)
        if len(ends) < 2:
            return ends[0] if ends else None
    return None


def slow_nearest(
    source: list[int], output: list[int], expected: int
) -> tuple[int, bool]:
    """The place behind the longest suffix that occurs, nearest to the expected one; whether one of a token occurs."""
    for size in range(len(output) + 1, 0, -1):
        ends = ends_of(size, source, output)
        if ends:
            return min(ends, key=lambda end: (abs(end - expected), -end)), True
    return expected, False


def slow_draft(source: list[int], place: int | None, max_draft_len: int) -> list[int]:
    """The source behind a place, EOS after it; no further than an EOS or a token that the target does not have."""
    if place is None:
        return []
    draft = []
    for token in [*source, EOS][place:]:
        if token == FOREIGN:
            break
        draft.append(token)
        if token == EOS:
            break
    return draft[:max_draft_len] if max_draft_len > 0 else draft


@examples(150)
@given(
    texts,
    st.lists(tokens, max_size=12),
    st.sampled_from([0, 0, 1, 3, 5]),
    st.randoms(use_true_random=False),
)
def test_drafts_follow_the_shortest_unique_suffix(
    source: list[int], output: list[int], longest: int, rng: random.Random
) -> None:
    """While the output grows by some tokens at a time."""
    matcher = SourceMatcher([*source, EOS], EOS, longest, resumes=False)
    for end in range(len(output) + 1):
        if rng.random() < 0.6 or end == len(output):
            draft, kind = matcher.copy([EOS, *output[:end]], end == 0)
            assert draft == slow_draft(
                source, slow_match(source, output[:end]), longest
            )
            assert kind <= min(end + 1, MAX_KIND)


@examples(300)
@given(
    texts,
    st.lists(tokens, max_size=12),
    st.sampled_from([0, 1, 2, sys.maxsize]),
    st.sampled_from([0, 0, 2]),
)
def test_drafts_resume_at_the_place_that_is_expected(
    source: list[int], output: list[int], limit: int, longest: int
) -> None:
    """A pass commits what is right of a draft, which may be cut, or left out, and one token more."""
    matcher = SourceMatcher([*source, EOS], EOS, longest)
    place = 0
    left_out = 1
    is_guess = False
    known = 0
    end = 0
    while True:
        expected = place
        new = output[known:end]
        for number, token in enumerate(new):
            if expected < len(source) and token == source[expected] != EOS:
                expected += 1
            else:
                left_out = 1 - left_out if is_guess and number == 0 else left_out
                expected = min(expected + left_out, len(source))
        place, occurs = slow_nearest(source, output[:end], expected)
        is_guess = not occurs
        draft, kind = matcher.copy([EOS, *output[:end]], end == 0, limit)
        assert draft == slow_draft(source, place, longest)[:limit]
        assert (kind == GUESS) == (slow_match(source, output[:end]) is None)
        known = end
        while (
            end < len(output)
            and end - known < len(draft)
            and output[end] == draft[end - known]
        ):
            end += 1
        if end == len(output):
            break
        end += 1


def draft_all(
    source: Sequence[int],
    output: Sequence[int],
    resumes: bool,
    limit: int,
) -> None:
    """Decode an output: what is right of a draft, and one token more, in each pass."""
    matcher = SourceMatcher([*source, EOS], EOS, resumes=resumes)
    text = [EOS]
    wanted = [EOS, *output, EOS]
    while len(text) < len(wanted):
        draft, _ = matcher.copy(text, len(text) == 1, limit)
        rest = wanted[len(text) : len(text) + len(draft) + 1]
        text += rest[: 1 + sum(takewhile(bool, map(eq, draft, rest)))]


@pytest.mark.parametrize("resumes", [True, False])
@pytest.mark.parametrize("limit", [1, 8, sys.maxsize])
def test_long_sources_that_repeat_one_token_take_no_quadratic_time(
    limit: int, resumes: bool
) -> None:
    began = time.process_time()
    draft_all([A] * 20_000, [*[A] * 5, B] * 3_333, resumes, limit)
    run = [A] * 8_000
    parts = [A] * 4_000
    draft_all(
        [A, B, *run, B, A, *run, B],
        [A, B, *parts, C, *parts, B, C, *run, B],
        resumes,
        limit,
    )
    assert time.process_time() - began < 2


def test_rows_draft_by_themselves_and_can_be_dropped_and_reordered() -> None:
    drafter = SourceCopyDrafter(
        [SourceMatcher([*source, EOS], EOS) for source in ([A, B], [B, C, D], [C], [D])]
    )
    draft = drafter.propose(outputs_of([[A], [C], [], [A]]), [9, 9, 1, 9])
    assert draft.lengths == [2, 2, 1, 1]
    drafts = texts_of(draft.tokens, draft.lengths)
    assert drafts == [[B, EOS], [D, EOS], [C], [EOS]]
    assert draft.kinds == [2, 1, 1, GUESS]
    drafter.keep(RowSelection([2, 1], torch.device("cpu")))
    assert drafter.propose(outputs_of([[C], [C, D]]), [9] * 2).tokens.tolist() == [
        [EOS],
        [EOS],
    ]


@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize(
    "tokens, expected",
    [
        ([A, B, C, EOS], [A, B, C, EOS]),
        ([A, B], [A, B, EOS]),  # an EOS that was missing
        ([], [EOS]),
        # special symbols inside the text
        ([A, PAD, EOS, B, EOS], [A, PAD, EOS, B, EOS]),
        ([EOS, EOS, EOS], [EOS, EOS, EOS]),
    ],
)
def test_sources_without_their_padding(
    tokens: list[int], expected: list[int], left_pad: bool
) -> None:
    padding = [PAD] * (6 - len(tokens))
    row = [*padding, *tokens] if left_pad else [*tokens, *padding]
    assert align_source(torch.tensor([[A, B, C, D, A, EOS], row]), PAD, EOS) == [
        [A, B, C, D, A, EOS],
        expected,
    ]


def test_sources_of_another_dictionary() -> None:
    # A is C, B unknown, C is A, D unknown
    to_target = [0, 1, 2, 3, C, FOREIGN, A, FOREIGN]
    source = torch.tensor([[PAD, A, B, C, EOS], [UNK, D, A, C, EOS]])
    assert align_source(source, PAD, EOS, to_target) == [
        [C, FOREIGN, A, EOS],
        [UNK, FOREIGN, C, A, EOS],
    ]
