"""How long drafts are: by how often they pass, how many rows share a pass, and what a draft costs."""

from collections.abc import Sequence

import pytest
import torch

from fairseq_aggdec.decoding.tokens import Draft, Outcome
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.draft_length import DraftLengths
from tests.support.scripted_decoding import EOS, outputs_of

COSTS = Costs(fixed=1.0, free=4.0)
BAD, GOOD = 1, 2
"""kinds of drafts"""


class Decoding:
    """Iterations without a model: of each row's draft of `LONG` tokens so many pass."""

    LONG = 100

    def __init__(self, costs: Costs = COSTS) -> None:
        self.schedule, self.costs = DraftLengths(costs), costs
        self.cost = self.alone = 0.0
        """of all iterations, and of as many without drafts"""

    def go(
        self, passing: Sequence[int], kinds: Sequence[int] = (), iterations: int = 100
    ) -> list[int]:
        """The lengths of the last drafts."""
        rows, outputs = len(passing), outputs_of([[]] * len(passing))
        by_model = self.costs.draft is not None
        lengths: list[int] = []
        for _ in range(iterations):
            limits = self.schedule.limits(outputs)
            longest = min(self.LONG, max(limits))
            tokens = torch.zeros(rows, longest, dtype=torch.long)
            own = [] if by_model else kinds
            draft = self.schedule.trim(
                Draft.of_known(tokens, [longest] * rows, own)
                if longest
                else Draft.none(rows)
            )
            lengths = draft.lengths or []
            accepted = list(map(min, lengths, passing))
            self.schedule.learn(
                draft,
                Outcome(lengths, accepted, [1 + passed for passed in accepted], None),
            )
            drafting = (
                self.costs.draft.whole(rows, longest)
                if self.costs.draft and longest
                else 0.0
            )
            self.cost += (
                self.costs.fixed + max(self.costs.free, rows + sum(lengths)) + drafting
            )
            self.alone += self.costs.iteration(rows, 0)
        return lengths


@pytest.mark.parametrize("rows", [1, 2, 4, 32])
@pytest.mark.parametrize(
    "draft", [None, DraftCost(8, 5.0, 0.5, 2.0), DraftCost(8, 1.0, 0.1, steps=True)]
)
def test_drafts_that_always_fail_cost_hardly_anything_and_are_tried_again(
    rows: int, draft: DraftCost | None
) -> None:
    decoding = Decoding(Costs(1.0, 4.0, draft))
    decoding.go([0] * rows, iterations=200)
    decoding.cost = decoding.alone = 0.0
    decoding.go([0] * rows, iterations=3000)
    assert decoding.cost < 1.03 * decoding.alone
    if rows == 1:
        assert decoding.go([Decoding.LONG], iterations=600) > [2]


def test_a_kind_that_always_passes_is_verified_whole() -> None:
    assert Decoding().go([Decoding.LONG]) == [Decoding.LONG]


def test_a_kind_that_fails_shortens_itself_beside_one_that_passes() -> None:
    bad, good = Decoding().go([0, 9], [BAD, GOOD])
    assert bad <= 1 < 6 < good < Decoding.LONG


@pytest.mark.parametrize("kind", [BAD, GOOD])
def test_the_rate_of_a_kind_follows_the_text(kind: int) -> None:
    """Of either kind: what one of them has learnt does not stay for ever."""
    decoding = Decoding()
    kinds, lengths = [kind, 3], []
    for passing in (12, 1, 12):
        lengths.append(decoding.go([passing, 5], kinds, iterations=600)[0])
    assert lengths[1] < 4 < 8 < min(lengths[0], lengths[2])


def test_the_more_rows_share_a_pass_the_shorter() -> None:
    decoding = Decoding()
    decoding.go([6], [GOOD], iterations=60)
    lengths = [decoding.schedule.length(rows, GOOD) for rows in (1, 2, 4, 8, 32)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 4
    assert lengths[-1] == 0


@pytest.mark.parametrize("steps", [True, False])
def test_a_model_drafts_alone_and_not_in_large_batches_nor_where_it_costs_as_much_as_it_saves(
    steps: bool,
) -> None:
    def lengths(call: float, rows: int = 1) -> int:
        return max(
            Decoding(Costs(1.0, 4.0, DraftCost(8, call, 0.1, steps=steps))).go(
                [6] * rows, iterations=60
            )
        )

    assert 4 <= lengths(0.5) <= 8
    assert lengths(0.5, rows=32) == lengths(100.0) == 0


def test_drafts_of_unknown_length_are_left_as_they_are() -> None:
    schedule = DraftLengths(COSTS)
    schedule.limits(outputs_of([[], []]))
    unknown = Draft.on_device(torch.zeros(2, 3, dtype=torch.long), EOS)
    assert schedule.trim(unknown) is unknown


def test_what_is_left_of_a_batch_that_began_without_drafts_goes_on_without() -> None:
    schedule = DraftLengths(COSTS)
    for texts, drafts in (
        ([[]] * 32, False),
        ([[7]], False),
        ([[]], True),
        ([[7]], True),
    ):
        assert any(schedule.limits(outputs_of(texts))) == drafts


def test_a_batch_that_begins_in_a_pause_drafts_behind_it() -> None:
    decoding = Decoding()
    while any(decoding.go([0], iterations=1)):
        pass
    limits = [
        any(decoding.schedule.limits(outputs_of([text]))) for text in [[], *[[7]] * 300]
    ]
    assert not limits[0]
    assert limits[-1]


def test_rows_that_read_long_sources_get_drafts_in_batches_too() -> None:
    schedule = DraftLengths(Costs(1.0, 4.0, position=0.01))
    for source_length, drafts in (20, False), (300, True):
        schedule.start(source_length)
        assert any(schedule.limits(outputs_of([[]] * 8))) == drafts
