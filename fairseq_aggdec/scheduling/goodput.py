"""How many draft tokens to verify: as many as make an iteration commit the most tokens for its cost.

    a_k(i)  probability that the first i tokens of a draft of kind k, of a row whose last few have failed, all pass
            (`acceptance_rates`)
    s       share of the rows that have a draft
    G(l)  = sum over rows r of [1 + s sum over i <= l_r of a_{k_r}(i)]                 tokens that an iteration commits
    n(l)  = sum over rows r of (1 + l_r), or B (1 + max l) where the verifier cannot leave padding out
    C(l)  = c_0 + max(c_read, n) + c_wide + B c_host + c_draft                         its cost, in rows of the verifier
            (c_wide, c_host and c_draft only where anything is drafted; c_host is the host's own work on a row; c_draft
            counts when a model is asked for a draft, no longer when it is decided how much of it is verified)
    choose l to maximise G / C; draft nothing where that promises less than a tenth more than no draft

`a` falls with i, so the best lengths are found by adding draft tokens in the order of their `a` while G / C rises. One
row's block costs a CPU little more than one token, since the weights of a large model have to be read from memory
anyway: c_read is 6 rows with weights in 16 bits, 13 with the kernels, 19 with PyTorch's operations, and none for a
model that fits into the caches. Many rows make the arithmetic bind, and then every draft token that does not
pass costs as much as one that does. And a batch lasts as long as its slowest row: what a row gains counts in proportion
to the rows that have a draft, hence s.

Exploration: a kind that was never tried, or not for a long time, is taken to be good. Until it has been tried a few
times, only a few rows draft, where the verifier can leave the others' padding out: they tell as much as all would.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from fairseq_aggdec.scheduling.acceptance_rates import LONGEST_STREAK, AcceptanceRates
from fairseq_aggdec.scheduling.costs import Costs

if TYPE_CHECKING:
    from fairseq_aggdec.decoding.outputs import Outputs
    from fairseq_aggdec.decoding.roles import Draft, Outcome

_LEAST_GAIN = 1.1
"""a model is asked for a draft where that promises so many times the speed of going without: smaller gains are within
the error of the estimates"""
_EXPECTED_REMAINING = 20
"""output tokens that each row is assumed to have left. What a drafter costs to start (its encoder pass, reading the
prefix) is spread over them"""
_FIRST_RATE = 0.95
"""acceptance rate of a kind of draft that was never tried: a kind that is taken to be bad would never be tried"""
_FIRST_RATE_BESIDE_A_MODEL = 0.9
"""the same where a model drafts, which costs more to try than a copy"""
_FEW = 4
"""rows that draft in an iteration until a kind has been tried so often"""
_LEAST_BENEFIT = 0.1
"""smaller gains of G / C are within the error of the estimates. Where drafts promise no more on average over
iterations, they are not worth the host's time to look for them either: there is a pause"""
_FIRST_BENEFIT = 0.25
"""what that average starts from"""
_SMOOTHING = 0.1
"""the weight of the latest iteration in it"""
_LONGEST_PAUSE = 32
"""iterations; each pause is twice as long as the one before, and ends with the batch"""

_Group = tuple[Hashable, int]
"""The kind of a draft and how many of its row's latest drafts have failed: what its chances depend on."""


class _Step(NamedTuple):
    """A further draft token for the rows of a group, or for all rows."""

    gain: float
    """how many of these tokens will be accepted, on average"""
    cost: float
    """rows of the verifier"""
    group: _Group | None = None


class Goodput:
    """A `decoding.roles.DraftSchedule` that learns how often draft tokens pass, from batch to batch."""

    def __init__(self, costs: Costs, by_a_model: Hashable = None) -> None:
        """
        Args:
            costs: of the verifier and the drafter.
            by_a_model: the kind of a draft that names none.
        """
        self.costs = costs
        self.rates = AcceptanceRates(_FIRST_RATE if costs.draft is None else _FIRST_RATE_BESIDE_A_MODEL)
        self._by_a_model = by_a_model
        self._asks_model = costs.draft is not None
        self._read: dict[int, int] = {}  # tokens of each sentence that the drafter has read
        self._refused = 0  # rows of the batch for which a draft by the model did not pay; 0: it has not been refused
        self._failures: list[int] = []  # of each row, before the iteration
        self._least_chance = 0.0  # of a token that is worth verifying in the iteration
        self._benefit = _FIRST_BENEFIT  # running mean of what drafts add to G / C, as a share of it
        self._pauses = 0  # in succession
        self._paused = 0  # iterations until the next draft

    def longest(self, outputs: Outputs) -> list[int]:
        """See `decoding.roles.DraftSchedule.longest`.

        Copies may have any length, since they cost nothing; a model is asked for what pays. Where nothing did, that
        is worked out again when half of the rows have left: no draft tells more of drafts, and the more there is to
        read first.
        """
        lengths = outputs.known_lengths
        if max(lengths) == 1:
            self._read = dict.fromkeys(outputs.rows, 0)
            self._paused = self._refused = 0
        if self._paused > 0:
            self._paused -= 1
            return [0] * len(lengths)
        if 0 < self._refused < 2 * len(lengths):
            return [0] * len(lengths)
        self._failures = [min(failures, LONGEST_STREAK) for failures in outputs.failures]
        # where each token is paid for by itself, one that brings less for its cost than no draft at all is not worth it
        pays_by_token = self.costs.ragged and len(lengths) >= self.costs.read
        self._least_chance = len(lengths) / self._pass(len(lengths), len(lengths)) if pays_by_token else 0.0
        size = sys.maxsize
        if self._asks_model:
            size = self._model_size(outputs.rows, lengths)
            self._refused = 0 if size else len(lengths)
        return [size] * len(lengths)

    def trim(self, draft: Draft) -> Draft:
        """See `decoding.roles.DraftSchedule.trim`."""
        if draft.known is None:
            return draft
        groups = list(zip(self._kinds(draft, len(draft.known)), self._failures, strict=True))
        best, benefit = self._worth(groups, draft.known)
        if not self._asks_model:  # a model is asked where it pays
            self._pause(benefit)
        if not self.costs.ragged:
            return draft.cut([len(best)] * len(groups))
        lengths, drafting, limits = Counter(step.group for step in best), Counter[_Group](), []
        for group, length in zip(groups, draft.known, strict=True):
            drafting[group] += length > 0
            explored = drafting[group] <= _FEW or self.rates.tried(*group) >= _FEW
            limits.append(lengths[group] if explored else 0)
        return draft.cut(limits)

    def _worth(self, groups: Sequence[_Group], lengths: Sequence[int]) -> tuple[list[_Step], float]:
        """The draft tokens that are worth verifying, and what they add to G / C, as a share of it."""
        rows = len(groups)
        if not any(lengths):
            return [], 0.0
        best = _best(rows, self.costs, self._steps(groups, lengths))
        benefit = self._benefit_of(rows, sum(step.gain for step in best), sum(step.cost for step in best))
        return (best, benefit) if benefit > _LEAST_BENEFIT else ([], 0.0)

    def _benefit_of(self, rows: int, gain: float, verified: float) -> float:
        """What draft tokens of which so many pass add to G / C, as a share of it."""
        drafted = self._pass(rows, rows + verified) + rows * self.costs.host
        return (rows + gain) / rows * self._pass(rows, rows) / drafted - 1.0

    def _pause(self, benefit: float) -> None:
        """Begin a pause where drafts have promised too little of late."""
        self._benefit += _SMOOTHING * (benefit - self._benefit)
        self._pauses = self._pauses + 1 if self._benefit < _LEAST_BENEFIT else 0
        if self._pauses > 0:
            self._paused = min(1 << (self._pauses - 1), _LONGEST_PAUSE)

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        """See `decoding.roles.DraftSchedule.learn`."""
        rows = len(outcome.drafted)
        self.rates.fade(rows)
        if any(outcome.drafted):
            for row in zip(self._kinds(draft, rows), self._failures, outcome.drafted, outcome.accepted, strict=True):
                self.rates.learn(*row)

    def _pass(self, rows: int, tokens: float) -> float:
        """What a pass over so many tokens of some rows costs."""
        return self.costs.rows(tokens) + (self.costs.wide if tokens > rows else 0.0)

    def _kinds(self, draft: Draft, rows: int) -> Sequence[Hashable]:
        return draft.kinds or [self._by_a_model] * rows

    def _steps(self, groups: Sequence[_Group], lengths: Sequence[int]) -> list[_Step]:
        """Draft tokens in the order in which they are worth it, for each row's group and the length of its draft."""
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
                having = len(ends) - bisect_right(ends, place)  # rows with a token there
                tokens.append((worth, having, group))
                gains[place] += worth * having
        if not self.costs.ragged:
            return [_Step(gain, rows) for gain in gains]
        tokens.sort(key=itemgetter(0), reverse=True)  # each group's own stay in their order
        return [_Step(worth * having, having, group) for worth, having, group in tokens]

    def _model_size(self, sentences: Sequence[int], lengths: Sequence[int]) -> int:
        """The best size of a model's draft that is still to be made, 0 for none.

        What it costs to begin has to be earned with the tokens that are left.

        Args:
            sentences: of the batch's rows.
            lengths: of their outputs, the first input counted.
        """
        draft = self.costs.draft
        if draft is None or draft.block_size == 0:
            return 0
        rows, sizes = len(lengths), range(draft.block_size + 1)
        tokens = [float(rows)] * len(sizes)  # that an iteration commits, with blocks of no token, one, two, ...
        verified = [float(rows)] * len(sizes)
        for failures, count in Counter(self._failures).items():
            chances = self.rates.chances(self._by_a_model, failures, draft.block_size)
            worth = (chance if chance > self._least_chance else 0.0 for chance in chances)
            for size, accepted in zip(sizes, accumulate(worth, initial=0.0), strict=False):
                tokens[size] += count * accepted
                verified[size] += count * size if accepted > 0 else 0.0
        unread = sum(length - self._read[sentence] for sentence, length in zip(sentences, lengths, strict=True))
        costs = [
            self._pass(rows, verified[size]) + rows * self.costs.host
            + draft.whole(rows * size, unread if draft.rereads else tokens[size])
            for size in sizes
        ]  # fmt: skip
        best = max(sizes[1:], key=lambda size: tokens[size] / costs[size])
        beginning = 0.0 if draft.rereads else draft.unread * max(0.0, unread - tokens[best])
        if not any(self._read[sentence] for sentence in sentences):
            beginning += draft.start
        left = _EXPECTED_REMAINING * rows
        with_model = beginning + max(1.0, left / tokens[best] + 0.5) * costs[best]
        without = left / tokens[0] * self._pass(rows, verified[0])
        if with_model > without / _LEAST_GAIN:
            return 0
        if not draft.rereads:
            self._read.update(zip(sentences, lengths, strict=True))
        return best


def _best(rows: int, costs: Costs, steps: Iterable[_Step]) -> list[_Step]:
    """The first steps, as many as bring the most tokens for the cost of a pass with drafts.

    Args:
        rows: each commits a token without any step.
        costs: of the pass.
        steps: each brings at most as much for its cost as the one before.
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
