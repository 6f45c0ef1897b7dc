"""How long drafts are: by how often they pass, how many rows share a pass, and what a draft costs."""

import pytest
import torch

from fairseq_aggdec.decoding.tokens import Draft, Outcome
from fairseq_aggdec.scheduling.costs import Costs, DraftCost
from fairseq_aggdec.scheduling.draft_length import DraftLengths
from tests.support.scripted_decoding import EOS, outputs_of

COSTS = Costs(fixed=1.0, free=4.0)
WHOLE = DraftCost(
    8,
    call=5.0,
    token=0.5,
    read=2.0,
)
IN_STEPS = DraftCost(
    8,
    call=1.0,
    token=0.1,
    steps=True,
)
BAD = 1
"""a kind of drafts"""
GOOD = 2
"""another one"""


class Decoding:
    """Iterations without a model: of each row's draft of `LONG` tokens so many pass."""

    LONG = 100

    def __init__(self, costs: Costs = COSTS) -> None:
        self.schedule = DraftLengths(costs)
        self.costs = costs
        self.cost = self.cost_without_drafts = 0.0
        """of all iterations"""

    def run(
        self,
        passing: list[int],
        kinds: list[int],
        iterations: int = 100,
    ) -> list[int]:
        """The lengths of the last drafts."""
        rows = len(passing)
        lengths: list[int] = []
        for _ in range(iterations):
            # a draft, cut
            limits = self.schedule.limits(outputs_of([[]] * rows))
            longest = min(self.LONG, max(limits))
            draft = Draft.none(rows)
            if longest > 0:
                tokens = torch.zeros(rows, longest, dtype=torch.long)
                draft = Draft.of_known(tokens, [longest] * rows, kinds)
            draft = self.schedule.trim(draft)

            # what passes of it
            lengths = draft.lengths or []
            accepted = list(map(min, lengths, passing))
            committed = [1 + passed for passed in accepted]
            outcome = Outcome(
                lengths,
                accepted,
                committed,
                None,
            )
            self.schedule.learn(draft, outcome)

            # what it costs: a model makes it whole
            read = rows + sum(lengths)
            self.cost += self.costs.fixed
            self.cost += max(self.costs.free, read)
            if self.costs.draft and longest:
                self.cost += self.costs.draft.whole(rows, longest)
            self.cost_without_drafts += self.costs.iteration(rows, 0)
        return lengths


@pytest.mark.parametrize("rows", [1, 2, 4, 32])
@pytest.mark.parametrize("draft", [None, WHOLE, IN_STEPS])
def test_drafts_that_always_fail_cost_hardly_anything_and_are_tried_again(
    rows: int, draft: DraftCost | None
) -> None:
    decoding = Decoding(Costs(1.0, 4.0, draft))
    decoding.run([0] * rows, [], iterations=200)
    decoding.cost = decoding.cost_without_drafts = 0.0
    decoding.run([0] * rows, [], iterations=3000)
    assert decoding.cost < 1.03 * decoding.cost_without_drafts
    if rows == 1:
        (length,) = decoding.run([Decoding.LONG], [], iterations=600)
        assert length > 2


def test_a_kind_that_always_passes_is_verified_whole() -> None:
    assert Decoding().run([Decoding.LONG], []) == [Decoding.LONG]


def test_a_kind_that_fails_shortens_itself_beside_one_that_passes() -> None:
    bad, good = Decoding().run([0, 9], [BAD, GOOD])
    assert bad <= 1
    assert 6 < good < Decoding.LONG


@pytest.mark.parametrize("kind", [BAD, GOOD])
def test_the_rate_of_a_kind_follows_the_text(kind: int) -> None:
    """Of either kind: no rate stays for ever."""
    decoding = Decoding()
    good, bad, good_again = (
        decoding.run([passing, 5], [kind, 3], iterations=600)[0]
        for passing in (12, 1, 12)
    )
    assert bad < 4
    assert min(good, good_again) > 8


def test_the_more_rows_share_a_pass_the_shorter() -> None:
    decoding = Decoding()
    decoding.run([6], [GOOD], iterations=60)
    lengths = [decoding.schedule.length(rows, GOOD) for rows in (1, 2, 4, 8, 32)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 4
    assert lengths[-1] == 0


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize(
    "call, rows, least, most",
    [(0.5, 1, 4, 8), (0.5, 32, 0, 0), (100.0, 1, 0, 0)],
)
def test_a_model_drafts_alone_and_not_in_large_batches_nor_where_it_costs_too_much(
    steps: bool, call: float, rows: int, least: int, most: int
) -> None:
    draft = DraftCost(8, call, 0.1, steps=steps)
    decoding = Decoding(Costs(1.0, 4.0, draft))
    lengths = decoding.run([6] * rows, [], iterations=60)
    assert least <= max(lengths) <= most


def test_drafts_of_unknown_length_are_left_as_they_are() -> None:
    schedule = DraftLengths(COSTS)
    schedule.limits(outputs_of([[], []]))
    tokens = torch.zeros(2, 3, dtype=torch.long)
    unknown = Draft.on_device(tokens, EOS)
    assert schedule.trim(unknown) is unknown


def test_a_batch_that_begins_without_drafts_has_none_when_rows_have_left() -> None:
    schedule = DraftLengths(COSTS)
    batches: list[list[list[int]]] = [[[]] * 32, [[7]], [[]], [[7]]]
    drafts = [any(schedule.limits(outputs_of(texts))) for texts in batches]
    assert drafts == [False, False, True, True]


def test_a_batch_that_begins_in_a_pause_drafts_after_it() -> None:
    decoding = Decoding()
    while any(decoding.run([0], [], iterations=1)):
        pass
    texts: list[list[int]] = [[], *[[7]] * 300]
    drafts = [any(decoding.schedule.limits(outputs_of([text]))) for text in texts]
    assert not drafts[0]
    assert drafts[-1]


def test_a_users_draft_is_tried_however_others_have_failed() -> None:
    decoding = Decoding()
    decoding.run([0], [])
    while not any(decoding.run([0], [], iterations=1)):
        pass  # a long pause begins
    drafts = []
    for has_guesses in (False, True):
        decoding.schedule.start(1, has_guesses)
        drafts.append(any(decoding.schedule.limits(outputs_of([[]]))))
    assert drafts == [False, True]


def test_rows_that_read_long_sources_get_drafts_in_batches_too() -> None:
    schedule = DraftLengths(Costs(1.0, 4.0, position=0.01))
    outputs = outputs_of([[]] * 8)
    schedule.start(20)
    assert not any(schedule.limits(outputs))
    schedule.start(300)
    assert any(schedule.limits(outputs))
