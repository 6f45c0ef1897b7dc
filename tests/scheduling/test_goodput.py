"""What of drafts is verified: what it promises against what it costs."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from fairseq_aggdec.decoding.tokens import Draft, Outcome
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.goodput import Goodput
from tests.support.scripted_decoding import EOS, outputs_of

FREE_ROWS = 24
"""rows of the verifier that cost as much as reading its weights"""
RAGGED, PADDED = Costs(FREE_ROWS, wide=4.0, ragged=True), Costs(FREE_ROWS)
READ = Costs(1.0, wide=4.0, ragged=True, read=FREE_ROWS)  # from memory, while so many rows are computed
ONE, OTHER = "one", "other"
"""kinds of drafts"""

Passes = Callable[[], int]


def draft_of(lengths: Sequence[int], kinds: Sequence[str] | None = None) -> Draft:
    kinds = [ONE] * len(lengths) if kinds is None else kinds
    return Draft.of_known(torch.zeros(len(lengths), max(lengths), dtype=torch.long), list(lengths), kinds)  # type: ignore[arg-type]


class Decoding:
    """Batches without a model: of each row's draft so many tokens pass, and the verifier adds one."""

    def __init__(self, costs: Costs) -> None:
        self.goodput = Goodput(costs, ONE)
        self.cost = self.wasted = 0.0
        """of all blocks and drafts, and of those tokens that did not pass; in rows"""

    def batch(
        self,
        lengths: Sequence[int],
        passing: Sequence[int | Passes],
        kinds: Sequence[str] | None = None,
        tokens: int = 150,
    ) -> list[list[int]]:
        """Decode outputs of so many tokens; how much of each row's draft was verified in each iteration.

        Of the drafts there are the lengths, the numbers of tokens that pass, and the kinds.
        """
        outputs, verified = outputs_of([[]] * len(lengths)), []
        while max(outputs.known_lengths) <= tokens:
            limits = self.goodput.limits(outputs)
            draft = Draft.none(len(lengths))
            if any(limits):
                draft = self.goodput.trim(draft_of(lengths, kinds).cut(limits))
            known = draft.lengths or []
            could = [passes if isinstance(passes, int) else passes() for passes in passing]
            accepted = [min(pair) for pair in zip(known, could, strict=True)]
            committed = [1 + passed for passed in accepted]
            self.goodput.learn(draft, Outcome(known, accepted, committed, None))
            self._count(known, accepted, max(limits))
            for row, length in enumerate(known):
                outputs.texts[row] += [0] * committed[row]
                if length:
                    outputs.failures[row] = 0 if accepted[row] else outputs.failures[row] + 1
            verified.append(known)
        return verified

    def trimmed(self, lengths: Sequence[int], kinds: Sequence[str] | None = None) -> list[int] | None:
        """What is verified of the first drafts of a batch."""
        outputs = outputs_of([[]] * len(lengths))
        return self.goodput.trim(draft_of(lengths, kinds).cut(self.goodput.limits(outputs))).lengths

    def _count(self, verified: Sequence[int], accepted: Sequence[int], drafted: int) -> None:
        costs, rows = self.goodput.costs, len(verified)
        block = sum(verified) if costs.ragged else rows * max(verified)
        model = costs.draft if drafted else None
        asked = 0.0 if model is None else model.whole(rows, drafted, rows)
        wide = costs.wide if any(verified) else 0.0
        self.cost += costs.rows(rows + block) + wide + asked
        self.wasted += block - sum(accepted) + (wide + asked if not any(accepted) else 0.0)


def geometric(chance: float) -> Passes:
    """Each token passes with the same probability."""
    rng = random.Random(1)
    return lambda: next(number for number in range(1000) if rng.random() > chance)


@pytest.mark.parametrize("costs", [RAGGED, PADDED, READ])
def test_wide_drafts_are_trimmed_in_a_large_batch_and_not_in_a_batch_of_one(costs: Costs) -> None:
    decoding = Decoding(costs)
    decoding.batch([10] * 4, [geometric(0.6)] * 4)
    widths = [max(decoding.trimmed([10] * rows) or []) for rows in (1, 2, 4, 8, 16, 32, 64)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] >= 3
    assert widths[-1] <= 1


def test_what_is_not_known_is_tried_by_a_few_rows_of_a_large_batch() -> None:
    decoding = Decoding(RAGGED)
    assert sum(length > 0 for length in decoding.trimmed([10] * 32) or []) == 4
    for _ in range(3):
        verified = decoding.batch([10] * 32, [10] * 32)
    assert all(row == [10] * 32 for row in verified)


def test_drafts_are_trimmed_by_their_kind_where_rows_are_ragged() -> None:
    """Of three tokens of the first kind all pass, of the second none, of the third one."""
    kinds = ["all", "none", "one"] * 10
    ragged, padded = Decoding(RAGGED), Decoding(PADDED)
    for decoding in (ragged, padded):
        decoding.batch([3] * 30, [3, 0, 1] * 10, kinds)
    assert ragged.trimmed([3] * 30, kinds) == [3, 0, 1] * 10
    assert len(set(padded.trimmed([3] * 30, kinds) or [])) == 1


@pytest.mark.parametrize("rows", [4, 32])
def test_a_row_whose_drafts_fail_again_and_again_gets_none_until_after_a_while(rows: int) -> None:
    """Others' drafts of the same kind pass."""
    decoding, tried = Decoding(RAGGED), []
    for _ in range(20):
        verified = decoding.batch([5] * rows, [0] + [5] * (rows - 1), tokens=190)
        tried.append(sum(row[0] > 0 for row in verified))
        assert all(min(row[1:]) > 0 for row in verified[2:])
    assert 1 <= min(tried) <= max(tried) < len(verified)
    assert sum(tried[5:]) < 0.4 * 15 * len(verified)


DRAFTER = DraftCost(block_size=10, call=10.0, token=0.1, unread=0.1, start=3.0)
ALL_COSTS = [
    pytest.param(RAGGED, 4, id="ragged-4"),
    pytest.param(RAGGED, 32, id="ragged-32"),
    pytest.param(PADDED, 4, id="padded-4"),
    pytest.param(Costs(256, wide=4.0, ragged=True), 32, id="gpu-32"),
    pytest.param(Costs(100, draft=DRAFTER), 32, id="drafter-32"),
    pytest.param(Costs(100, wide=4.0, ragged=True, draft=DRAFTER), 4, id="drafter of ragged-4"),
]


@pytest.mark.parametrize(("costs", "rows"), ALL_COSTS)
def test_what_fails_is_tried_again_but_seldom(costs: Costs, rows: int) -> None:
    """After as many tokens as some thousand sentences have, drafts that have become good are verified again."""
    decoding = Decoding(costs)
    for _ in range(64 // rows):
        decoding.batch([10] * rows, [0] * rows)
    decoding.cost = decoding.wasted = 0.0
    tries = sum(max(row) > 0 for _ in range(192 // rows) for row in decoding.batch([10] * rows, [0] * rows))
    assert tries > 0
    assert decoding.wasted < 0.03 * decoding.cost
    for _ in range(320 // rows):
        last = decoding.batch([10] * rows, [10] * rows)[-1]
        if min(last) > 5:
            return
    raise AssertionError("never again")


@pytest.mark.parametrize(
    ("draft", "asked"), [(DraftCost(10, 1.0, 0.1, 0.1), True), (DraftCost(10, 60.0, 2.0, 2.0), False)]
)
def test_an_expensive_drafter_is_asked_less_often(draft: DraftCost, asked: bool) -> None:
    """Two of its tokens pass."""
    decoding = Decoding(Costs(FREE_ROWS, draft=draft))
    for _ in range(3):
        verified = decoding.batch([10] * 8, [2] * 8)
    assert (max(verified[-1]) == 2) == asked
    assert any(map(max, verified)) == asked


def test_a_drafter_that_takes_a_step_for_each_token_drafts_as_many_as_its_acceptance_is_worth() -> None:
    """Whatever has failed just before; and none where a step takes as long as one of the verifier's."""
    small, sizes = DraftCost(8, 5.0, 0.1, 0.1, steps=True), {}
    for chance in (0.3, 0.7, 0.97):
        decoding = Decoding(replace(RAGGED, draft=small))
        verified = [decoding.batch([8], [geometric(chance)]) for _ in range(20)][-1]
        sizes[chance] = max(length for [length] in verified)
    assert 0 == sizes[0.3] < sizes[0.7] < 5 < sizes[0.97] == 8
    large = Decoding(replace(RAGGED, draft=replace(small, call=FREE_ROWS)))
    large.batch([8], [geometric(0.5)])
    assert not any(length for [length] in large.batch([8], [geometric(0.5)]))


def test_drafts_of_unknown_length_are_left_as_they_are() -> None:
    decoding, outputs = Decoding(RAGGED), outputs_of([[], []])
    decoding.goodput.limits(outputs)
    unknown = Draft.on_device(torch.zeros(2, 3, dtype=torch.long), EOS)
    assert decoding.goodput.trim(unknown) is unknown
