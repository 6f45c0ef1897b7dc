"""Acceptance against the plain definitions."""

import math
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import NO_DRAFT, Block, Chosen, Draft, Ragged
from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta, judge
from fairseq_aggdec.engine.plain.choice import PLAIN, choose_block
from tests.support.scripted_decoding import EOS, PAD, UNK, examples

VOCABULARY = 7
RULES = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=100, min_len=0)

shapes = st.tuples(st.integers(1, 4), st.integers(2, 7))


def block_of(drafts: Tensor, widths: list[int] | None = None) -> Block:
    """Drafts behind the start symbol."""
    return Block.of(
        torch.cat([torch.full((len(drafts), 1), EOS), drafts], dim=1),
        [0] * len(drafts),
        widths,
    )


def random_case(
    shape: tuple[int, int], seed: int, ranks: int = 1
) -> tuple[Tensor, Tensor, Chosen]:
    """Drafts of so many rows and columns, B x W, and random scores, some of which are equal, with their choices.

    Nothing is drafted in the last column.
    """
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(0, 9, (*shape, VOCABULARY), generator=generator) / 4
    proposed = torch.randint(NO_DRAFT, VOCABULARY, shape, generator=generator)
    proposed[:, -1] = NO_DRAFT
    return (
        proposed,
        logits,
        choose_block(
            [logits.flatten(0, 1)],
            PLAIN,
            block_of(proposed[:, :-1]),
            RULES,
            ranks,
            None,
        ),
    )


class Judged(NamedTuple):
    """What `Acceptance.judge` returns."""

    passed: Tensor
    tokens: Tensor
    log_probs: Tensor


def judged(accept: Acceptance, proposed: Tensor, chosen: Chosen) -> Judged:
    """Whole blocks, B x W."""
    whole = Chosen._make(
        None if part is None else part.view_as(proposed) for part in chosen
    )
    return Judged(*accept.judge(proposed, whole))


@examples(30)
@given(shapes, st.integers(0, 10_000), st.booleans())
def test_exact_on_the_host_is_what_any_acceptance_would_say(
    shape: tuple[int, int], seed: int, known: bool
) -> None:
    """Of rows whose drafts have different lengths, which the host knows or not; at a draft's end nothing passes."""
    proposed, logits, chosen = random_case(shape, seed)
    rows, width = shape
    drafts = [(seed + row) % width for row in range(rows)]
    widths = None
    if known:
        draft = Draft.of_known(proposed, drafts)
        widths = [1 + length for length in drafts]
    else:
        draft = Draft.on_device(proposed[:, :-1], EOS).cut(drafts)
        ends = [[*row, EOS].index(EOS) + 1 for row in proposed.tolist()]
        drafts = list(map(min, drafts, ends))
    block = block_of(draft.tokens, widths)
    entries = [
        (row, column)
        for row, wide in enumerate(block.ragged.widths)
        for column in range(wide)
    ]
    scores = torch.stack([logits[entry] for entry in entries])
    verdict = judge(
        choose_block([scores], PLAIN, block, RULES, 0, None), EXACT, block, draft
    )
    none_besides = Acceptance(TopBeta(None, -1.0))
    # as of a GPU
    elsewhere = replace(
        block, ragged=Ragged.of(block.ragged.widths, torch.device("meta"))
    )
    assert (
        judge(
            choose_block([scores], PLAIN, block, RULES, 1, None),
            none_besides,
            elsewhere,
            draft,
        )
        == verdict
    )
    general = judged(EXACT, proposed, chosen)
    assert verdict.drafted == drafts
    assert verdict.passed == [
        column < drafts[row] and bool(general.passed[row, column])
        for row, column in entries
    ]
    assert verdict.tokens == [int(general.tokens[entry]) for entry in entries]
    assert verdict.log_probs == [float(general.log_probs[entry]) for entry in entries]


@examples(60)
@given(
    shapes,
    st.integers(0, 10_000),
    st.sampled_from([None, *range(1, VOCABULARY + 1)]),
    st.sampled_from([0.0, 0.25, 0.6, 2.0, math.inf]),
)
def test_top_beta_position_by_position(
    shape: tuple[int, int], seed: int, beta: int | None, tolerance: float
) -> None:
    """Equations 8 and 9 as they stand, for every position; multiples of 1/4 make equalities exact."""
    accept = Acceptance(TopBeta(beta, tolerance))
    proposed, logits, chosen = random_case(shape, seed, accept.ranks)
    all_scores = logits.log_softmax(dim=-1)
    all_scores[..., PAD] = -math.inf
    verdict = judged(accept, proposed, chosen)
    for row, column in torch.cartesian_prod(
        torch.arange(shape[0]), torch.arange(shape[1])
    ).tolist():
        drafted = int(proposed[row, column])
        scores = all_scores[row, column]
        own = int(chosen.tokens[row * shape[1] + column])
        passed = drafted == own
        if drafted != NO_DRAFT and scores[drafted] > -math.inf:
            better = int((scores > scores[drafted]).sum())
            passed |= (beta is None or better < beta) and bool(
                scores[own] - scores[drafted] <= tolerance
            )
        assert bool(verdict.passed[row, column]) == passed
        token = drafted if passed else own
        assert int(verdict.tokens[row, column]) == token
        log_prob = scores[token]
        torch.testing.assert_close(verdict.log_probs[row, column], log_prob)


@pytest.mark.parametrize(
    "drafted, rules",
    [
        (PAD, {}),
        (EOS, {"min_len": 1}),
        (5, {"suppressed": (5,)}),
        (5, {"prefix": torch.tensor([[6]])}),
        (EOS, {"source_lengths": torch.tensor([3])}),
        (5, {"source_lengths": torch.tensor([0])}),
        (5, {"max_len": 0}),
    ],
)
def test_search_rules_bind_drafts_too(drafted: int, rules: dict[str, object]) -> None:
    """However wide the tolerance is."""
    settings = {"pad": PAD, "unk": UNK, "eos": EOS, "max_len": 9, "min_len": 0, **rules}
    accept = Acceptance(TopBeta(VOCABULARY, 40.0))
    draft = Draft.whole(torch.tensor([[drafted]]))
    block = block_of(draft.tokens)
    scores = torch.tensor([[1.0] * 4 + [1.5] + [1.0] * 2] * 2)
    search_rules = SearchRules(**settings)  # type: ignore[arg-type]
    verdict = judge(
        choose_block([scores], PLAIN, block, search_rules, accept.ranks, None),
        accept,
        block,
        draft,
    )
    assert not verdict.passed[0]
    assert verdict.tokens[0] != drafted
