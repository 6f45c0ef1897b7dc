"""Acceptance against the plain definitions."""

import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.blocks import Block, Draft, Ragged
from fairseq_aggdec.engine.plain.choice import Choices
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.blocks import NO_DRAFT
from fairseq_aggdec.decoding.verification import EXACT, Acceptance, TopBeta, Verdict
from tests.scripted_decoding import EOS, PAD, UNK, examples

VOCABULARY = 7
RULES = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=100, min_len=0)

shapes = st.tuples(st.integers(1, 4), st.integers(1, 6))


def random_case(
    shape: tuple[int, int], seed: int, rules: SearchRules = RULES, ranks: int = 1
) -> tuple[Tensor, Choices]:
    """Drafts of so many rows and columns, B x W, and the choices from random scores, some of which are equal."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(0, 9, (*shape, VOCABULARY), generator=generator) / 4
    proposed = torch.randint(NO_DRAFT, VOCABULARY, shape, generator=generator)
    starts = torch.randint(0, 3, (shape[0],), generator=generator)
    sequence = torch.randint(EOS, VOCABULARY, (shape[0], 3 + shape[1]), generator=generator)
    every = Ragged.full(*shape, proposed.device)
    positions, rows = starts[every.rows] + every.columns, every.rows
    return proposed, rules.keep(rows).choose(logits.flatten(0, 1), positions, sequence[rows], ranks=ranks)


class Judged(NamedTuple):
    """What `by_block` returns."""

    passed: Tensor
    tokens: Tensor
    log_probs: Tensor


def judged(accept: Acceptance, proposed: Tensor, choices: Choices) -> Judged:
    """Whole blocks, B x W."""
    by_token = accept.by_token(proposed.flatten(), choices)
    return Judged(*accept.by_block(*(entries.view_as(proposed) for entries in by_token)))


@examples(30)
@given(shapes, st.integers(0, 10_000), st.booleans())
def test_exact_on_the_host_is_what_any_acceptance_would_say(shape: tuple[int, int], seed: int, known: bool) -> None:
    """Of rows whose drafts have different lengths, which the host knows or not; at a draft's end nothing passes."""
    proposed, choices = random_case(shape, seed)
    rows, width = shape
    drafts = [(seed + row) % width for row in range(rows)]
    if known:
        draft, widths = Draft.of_known(proposed, drafts), [1 + length for length in drafts]
    else:
        draft, widths = Draft(proposed[:, :-1], None, unknown=torch.tensor(drafts)), None
    block = Block.of(torch.cat([torch.full((rows, 1), EOS), draft.tokens], dim=1), torch.zeros(rows), [0], widths)
    entries = [(row, column) for row, wide in enumerate(block.ragged.widths) for column in range(wide)]
    numbers = [row * width + column for row, column in entries]
    verdict = Verdict.exact(block, draft, choices.tokens[numbers], choices.log_probs[numbers])
    general = judged(EXACT, proposed, choices)
    assert verdict.passed == [column < drafts[row] and bool(general.passed[row, column]) for row, column in entries]
    assert verdict.tokens == [int(general.tokens[entry]) for entry in entries]
    assert verdict.log_probs == [float(general.log_probs[entry]) for entry in entries]


@examples(60)
@given(
    shapes,
    st.integers(0, 10_000),
    st.sampled_from([None, *range(1, VOCABULARY + 1)]),
    st.sampled_from([0.0, 0.25, 0.6, 2.0, math.inf]),
)
def test_top_beta_position_by_position(shape: tuple[int, int], seed: int, beta: int | None, tolerance: float) -> None:
    """Equations 8 and 9 as they stand, for every position; multiples of 1/4 make equalities exact."""
    accept = Acceptance(TopBeta(beta, tolerance))
    proposed, choices = random_case(shape, seed, ranks=accept.ranks)
    all_scores = choices.scores[:].unflatten(0, shape)
    verdict = judged(accept, proposed, choices)
    for row, column in torch.cartesian_prod(torch.arange(shape[0]), torch.arange(shape[1])).tolist():
        drafted, scores = int(proposed[row, column]), all_scores[row, column]
        own = int(choices.tokens[row * shape[1] + column])
        passed = drafted == own
        if drafted != NO_DRAFT and scores[drafted] > -math.inf:
            better = int((scores > scores[drafted]).sum())
            passed |= (beta is None or better < beta) and bool(scores[own] - scores[drafted] <= tolerance)
        assert bool(verdict.passed[row, column]) == passed
        token = drafted if passed else own
        assert int(verdict.tokens[row, column]) == token
        log_prob = scores[token]
        torch.testing.assert_close(verdict.log_probs[row, column], log_prob)


def choices_of(scores: list[float], **rules: object) -> Choices:
    """For the first output position, with all ranks."""
    settings = {"pad": PAD, "unk": UNK, "eos": EOS, "max_len": 9, "min_len": 0, **rules}
    search_rules = SearchRules(**settings)  # type: ignore[arg-type]
    first, start = torch.tensor([0]), torch.tensor([[EOS]])
    return search_rules.choose(torch.tensor([scores]), first, start, ranks=len(scores))


@pytest.mark.parametrize(
    ("drafted", "rules"),
    [
        (PAD, {}),
        (EOS, {"min_len": 1}),
        (5, {"suppressed": (5,)}),
        (5, {"prefix": torch.tensor([[6]])}),
        (EOS, {"source_lengths": torch.tensor([3])}),
        (5, {"max_len": 0}),
    ],
)
def test_search_rules_bind_drafts_too(drafted: int, rules: dict[str, object]) -> None:
    """However wide the tolerance is."""
    choices = choices_of([1.0] * 4 + [1.5] + [1.0] * 2, **rules)
    verdict = judged(Acceptance(TopBeta(VOCABULARY, 40.0)), torch.tensor([[drafted]]), choices)
    assert not verdict.passed
    assert int(verdict.tokens) != drafted
