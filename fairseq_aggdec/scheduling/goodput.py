"""How many draft tokens to verify: the number that maximises the committed tokens of an iteration for its cost.

    a_k(i)  probability that the first i tokens of a draft of kind k all pass, for a row with a given number of failed
            drafts in succession (`acceptance_rates`)
    s       share of the rows that have a draft
    G(l)  = sum over rows r of [1 + s sum over i <= l_r of a_{k_r}(i)]                 tokens that an iteration commits
    n(l)  = sum over rows r of (1 + l_r), or B (1 + max l) where the verifier cannot leave padding out
    C(l)  = c_0 + max(c_read, n) + c_wide + B c_host + c_draft                         its cost, in rows of the verifier
            (c_wide, c_host and c_draft only with a draft; c_host is the host's own work on a row; c_draft counts in the
            decision to make a draft, not in the decision how much of it to verify)
    choose l to maximise G / C; draft nothing where the gain over no draft is below a tenth

`a` falls with i, so the best lengths are found by adding draft tokens in the order of their `a` while G / C rises. One
row's block costs a CPU little more than one token, since the weights of a large model are read from memory anyway:
c_read is 6 rows with weights in 16 bits, 13 with the kernels, 19 with PyTorch's operations, and 0 for a model that fits
into the caches. With many rows arithmetic is the bottleneck, and a rejected draft token costs as much as an accepted
one. A batch lasts as long as its slowest row, so the gain of a row counts in proportion to the rows with a draft: s.

Exploration: the prior of a kind is a high acceptance rate. Until a kind has been tried `_EXPLORING_ROWS` times, only
that many rows draft, where the verifier can leave padding out: more rows would not improve the estimate.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from fairseq_aggdec.scheduling.acceptance_rates import MAX_STREAK, AcceptanceRates
from fairseq_aggdec.scheduling.costs import Costs

if TYPE_CHECKING:
    from fairseq_aggdec.decoding.outputs import Outputs
    from fairseq_aggdec.decoding.tokens import Draft, Outcome

_MIN_SPEEDUP = 1.1
"""least expected speed-up for which a model drafts; smaller gains are within the error of the estimates"""
_EXPECTED_REMAINING = 20
"""output tokens that each row is assumed to have left; the start-up cost of a drafter is spread over them"""
_PRIOR_RATE = 0.95
"""prior acceptance rate of a copy; with a low prior a kind would never be tried"""
_PRIOR_RATE_OF_MODEL = 0.9
"""prior acceptance rate where a model drafts, which costs more to try than a copy"""
_EXPLORING_ROWS = 4
"""rows that draft in an iteration until their kind has been tried this many times"""
_MIN_BENEFIT = 0.1
"""least gain of G / C for which drafts are verified; with a smaller running mean the search for drafts pauses"""
_INITIAL_BENEFIT = 0.25
"""initial value of the running mean"""
_SMOOTHING = 0.1
"""weight of the latest iteration in the running mean"""
_MAX_PAUSE = 32
"""iterations; each pause is twice as long as the last one, and ends with the batch"""

_Group = tuple[Hashable, int]
"""Kind of a draft and number of its row's failed drafts in succession: rows of a group have the same chances."""


class _Step(NamedTuple):
    """One more draft token for the rows of a group, or for all rows."""

    gain: float
    """expected number of accepted tokens among them"""
    cost: float
    """rows of the verifier"""
    group: _Group | None = None
    """None: all rows"""


class Goodput:
    """A `decoding.roles.DraftSchedule` that learns how often draft tokens pass, from batch to batch."""

    def __init__(self, costs: Costs, by_a_model: Hashable = None) -> None:
        """`by_a_model`: the kind of drafts without `kinds`."""
        self.costs = costs
        self.rates = AcceptanceRates(_PRIOR_RATE if costs.draft is None else _PRIOR_RATE_OF_MODEL)
        self._by_a_model = by_a_model
        self._has_model = costs.draft is not None
        # a model that drafts token by token sees what it has failed at, and does not fail at the next draft, too
        self._longest_streak = 0 if costs.draft is not None and costs.draft.steps else MAX_STREAK
        self._tokens_read: dict[int, int] = {}  # by sentence, the tokens that the drafter has read
        self._refused = 0  # size of the batch when a draft by the model did not pay; 0: the model drafts
        self._failures: list[int] = []  # failed drafts of each row in succession, before the iteration
        self._least_chance = 0.0  # least chance of a token that is worth verifying in the iteration
        self._benefit = _INITIAL_BENEFIT  # running mean of the relative gain of G / C by drafts
        self._pauses = 0  # number of pauses in succession
        self._paused = 0  # iterations until the next draft

    def limits(self, outputs: Outputs) -> list[int]:
        """Return the longest draft to make for each row, as `DraftSchedule.limits` says.

        Copies are free and have no limit, except in a pause (0). A drafter model gets one block size for all rows: the
        best G / C, or 0 where no size pays. After a 0 the size is computed again once half of the rows have finished:
        without drafts the acceptance rates stay the same, and each iteration adds tokens that the drafter must read
        first.
        """
        lengths = outputs.known_lengths
        if outputs.are_new:
            self._tokens_read = dict.fromkeys(outputs.rows, 0)
            self._paused = self._refused = 0
        if self._paused > 0:
            self._paused -= 1
            return [0] * len(lengths)
        if 0 < self._refused < 2 * len(lengths):
            return [0] * len(lengths)
        self._failures = [min(failures, self._longest_streak) for failures in outputs.failures]
        # where each token has its own cost, its gain for the cost must be above that of a pass without a draft
        pays_by_token = self.costs.ragged and len(lengths) >= self.costs.read
        self._least_chance = len(lengths) / self._pass_cost(len(lengths), len(lengths)) if pays_by_token else 0.0
        size = sys.maxsize
        if self._has_model:
            size = self._model_size(outputs.rows, lengths)
            self._refused = 0 if size else len(lengths)
        return [size] * len(lengths)

    def trim(self, draft: Draft) -> Draft:
        if draft.lengths is None:
            return draft
        groups = list(zip(self._kinds(draft, len(draft.lengths)), self._failures, strict=True))
        best, benefit = self._best_steps(groups, draft.lengths)
        if not self._has_model:  # a model drafts only where it pays
            self._pause(benefit)
        if not self.costs.ragged:
            return draft.cut([len(best)] * len(groups))
        lengths, drafting, limits = Counter(step.group for step in best), Counter[_Group](), []
        for group, length in zip(groups, draft.lengths, strict=True):
            drafting[group] += length > 0
            explored = drafting[group] <= _EXPLORING_ROWS or self.rates.tried(*group) >= _EXPLORING_ROWS
            limits.append(lengths[group] if explored else 0)
        return draft.cut(limits)

    def _best_steps(self, groups: Sequence[_Group], lengths: Sequence[int]) -> tuple[list[_Step], float]:
        """The draft tokens that are worth verifying, and their relative gain of G / C."""
        rows = len(groups)
        if not any(lengths):
            return [], 0.0
        best = _best(rows, self.costs, self._steps(groups, lengths))
        benefit = self._benefit_of(rows, sum(step.gain for step in best), sum(step.cost for step in best))
        return (best, benefit) if benefit > _MIN_BENEFIT else ([], 0.0)

    def _benefit_of(self, rows: int, gain: float, verified: float) -> float:
        """The relative gain of G / C by `verified` draft tokens, of which `gain` pass."""
        drafted = self._pass_cost(rows, rows + verified) + rows * self.costs.host
        return (rows + gain) / rows * self._pass_cost(rows, rows) / drafted - 1.0

    def _pause(self, benefit: float) -> None:
        """Begin a pause where the running mean of the benefit is too small."""
        self._benefit += _SMOOTHING * (benefit - self._benefit)
        self._pauses = self._pauses + 1 if self._benefit < _MIN_BENEFIT else 0
        if self._pauses > 0:
            self._paused = min(1 << (self._pauses - 1), _MAX_PAUSE)

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        rows = len(outcome.drafted)
        self.rates.fade(rows)
        if any(outcome.drafted):
            for row in zip(self._kinds(draft, rows), self._failures, outcome.drafted, outcome.accepted, strict=True):
                self.rates.learn(*row)

    def _pass_cost(self, rows: int, tokens: float) -> float:
        """The cost of a pass over `tokens` tokens of `rows` rows."""
        return self.costs.rows(tokens) + (self.costs.wide if tokens > rows else 0.0)

    def _kinds(self, draft: Draft, rows: int) -> Sequence[Hashable]:
        return draft.kinds or [self._by_a_model] * rows

    def _steps(self, groups: Sequence[_Group], lengths: Sequence[int]) -> list[_Step]:
        """Draft tokens in descending order of their chance, given the group and the draft length of each row."""
        rows = len(groups)
        of_group: dict[_Group, list[int]] = {}
        for group, length in zip(groups, lengths, strict=True):
            of_group.setdefault(group, []).append(length)
        share = sum(length > 0 for length in lengths) / rows
        tokens: list[tuple[float, int, _Group]] = []
        gains = [0.0] * max(lengths)
        for group, ends in of_group.items():
            ends.sort()
            for place, chance in enumerate(self.rates.chances(*group, ends[-1])[: ends[-1]]):
                worth = share * chance
                if worth <= self._least_chance:
                    break
                count = len(ends) - bisect_right(ends, place)  # rows with a token at this place
                tokens.append((worth, count, group))
                gains[place] += worth * count
        if not self.costs.ragged:
            return [_Step(gain, rows) for gain in gains]
        tokens.sort(key=itemgetter(0), reverse=True)  # stable: the tokens of a group stay in order
        return [_Step(worth * count, count, group) for worth, count, group in tokens]

    def _model_size(self, sentences: Sequence[int], lengths: Sequence[int]) -> int:
        """The best size of the model's next draft; 0 for no draft.

        Start-up costs must pay off over the expected remaining tokens.

        `sentences`: the sentence number of each row; `lengths`: the length of each output, the first input counted.
        """
        draft = self.costs.draft
        if draft is None or draft.block_size == 0:
            return 0
        rows, sizes = len(lengths), range(draft.block_size + 1)
        tokens = [float(rows)] * len(sizes)  # committed in an iteration, by block size from 0
        verified = [float(rows)] * len(sizes)
        for failures, count in Counter(self._failures).items():
            chances = self.rates.chances(self._by_a_model, failures, draft.block_size)
            worth = (chance if chance > self._least_chance else 0.0 for chance in chances)
            for size, accepted in zip(sizes, accumulate(worth, initial=0.0), strict=False):
                tokens[size] += count * accepted
                verified[size] += count * size if accepted > 0 else 0.0
        unread = sum(length - self._tokens_read[sentence] for sentence, length in zip(sentences, lengths, strict=True))
        costs = [
            self._pass_cost(rows, verified[size]) + rows * self.costs.host
            + draft.whole(rows, size, unread if draft.rereads else tokens[size])
            for size in sizes
        ]  # fmt: skip
        best = max(sizes[1:], key=lambda size: tokens[size] / costs[size])
        beginning = 0.0 if draft.rereads else draft.unread * max(0.0, unread - tokens[best])
        if not any(self._tokens_read[sentence] for sentence in sentences):
            beginning += draft.start
        left = _EXPECTED_REMAINING * rows
        with_model = beginning + max(1.0, left / tokens[best] + 0.5) * costs[best]
        without = left / tokens[0] * self._pass_cost(rows, verified[0])
        if with_model > without / _MIN_SPEEDUP:
            return 0
        if not draft.rereads:
            self._tokens_read.update(zip(sentences, lengths, strict=True))
        return best


def _best(rows: int, costs: Costs, steps: Iterable[_Step]) -> list[_Step]:
    """The first steps, up to the number that maximises G / C.

    Args:
        rows: number of rows; each commits a token without any step.
        costs: of the pass.
        steps: in descending order of gain / cost.
    """
    best = []
    tokens = verified = float(rows)
    cost = costs.rows(verified) + costs.wide
    for step in steps:
        more = costs.rows(verified + step.cost) + costs.wide - cost
        if step.gain * cost <= tokens * more:
            break
        tokens += step.gain
        verified += step.cost
        cost += more
        best.append(step)
    return best
