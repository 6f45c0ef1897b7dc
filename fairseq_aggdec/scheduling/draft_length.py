"""How much of a draft is verified: the length that commits the most tokens in a given time (not in the papers).

    p     rate at which the judged draft tokens of a kind pass: accepted / (accepted + failed drafts)
    G(l)  = 1 + p + ... + p^l               tokens that a row commits in an iteration with a draft of l tokens
    C(l)  = c + max(free, B (a + 1 + l)) + d(l)     its cost for B rows, in tokens of a pass (`costs`); a: attention to
                                            a row's source; d: drafting
    choose l to maximise G / C; draft nothing where that is hardly above G(0) / C(0)

Each row's length follows from the rate of its draft's kind alone. The first tokens of a pass are free, as many as it
computes while it reads its weights: with one row or two drafts pay nearly always, from about five rows on nearly never.
"""

import sys
from collections import defaultdict
from itertools import accumulate

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import DraftSchedule
from fairseq_aggdec.decoding.tokens import MODEL_DRAFT, Draft, Outcome
from fairseq_aggdec.scheduling.costs import Costs

_PRIOR_RATE = 0.9
_PRIOR_TRIES = 4.0
"""a kind begins as if it had been tried so often, at a rate with which it is tried"""
_UNTRIED = -2
"""stands for a kind that was not tried yet"""
_MEMORY = 100
"""iterations, pauses aside, in which counts fade to a third, so that a kind that has failed is tried again"""
_LONGEST = 64
"""tokens; where so many pay, drafts have no limit"""
_MIN_SPEEDUP = 1.1
"""least G / C over that without a draft"""
_MIN_ACCEPTED = 0.3
"""accepted tokens of a row and iteration, on an average; below it drafts are not worth looking for"""
_SMOOTHING = 0.1
"""weight of the latest iteration in this average"""
_MAX_PAUSE = 128
"""iterations; each pause is twice as long as the one before"""


class DraftLengths(DraftSchedule):
    """Learns how often the drafts of each kind pass, from batch to batch, and cuts them to the length that pays."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._passed: dict[int, float] = defaultdict(float)  # draft tokens, by kind
        self._failed: dict[int, float] = defaultdict(float)
        self._attention = 0.0  # a, of this batch
        # lengths found, by rows, rate in percent and a
        self._best: dict[tuple[int, int, float], int] = {}
        self._accepted = 1.0  # the average for `_MIN_ACCEPTED`
        self._pause = 1  # the length of the last one
        self._paused = 0  # iterations until the next draft
        self._drafts = False  # whether there may be drafts in this iteration
        self._paid = False  # whether drafts paid when this batch began

    def start(self, source_length: int, has_guesses: bool = False) -> None:
        """Begin a batch with sources of so many positions, padding included.

        `has_guesses`: whether some have a user's draft, which is tried however those of other sentences have failed.
        """
        if has_guesses:
            self._paused = 0
        # so that few lengths are computed
        self._attention = round(2 * self._costs.position * source_length) / 2

    def limits(self, outputs: Outputs) -> list[int]:
        """A model's drafts are as long as pays, and copies are cut later; 0 for all rows where no draft pays.

        Where drafts do not pay when a batch begins, there are none in it later, when rows have left: a model that
        begins late must first read all that was written.
        """
        rows = len(outputs.rows)
        if outputs.are_new:
            self._paid = self._longest(rows) > 0
        if self._paused > 0:
            self._paused -= 1
            longest = 0
        else:
            self._fade()
            longest = self._longest(rows) if self._paid else 0
        self._drafts = longest > 0
        return [longest] * rows

    def trim(self, draft: Draft) -> Draft:
        if draft.lengths is None:
            return draft
        rows = len(draft.lengths)
        kinds = draft.kinds or [MODEL_DRAFT] * rows
        lengths = {kind: self.length(rows, kind) for kind in set(kinds)}
        return draft.cut([lengths[kind] for kind in kinds])

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        if not self._drafts:
            return
        rows = len(outcome.drafted)
        kinds = draft.kinds or [MODEL_DRAFT] * rows
        for kind, drafted, accepted in zip(
            kinds, outcome.drafted, outcome.accepted, strict=True
        ):
            self._passed[kind] += accepted
            self._failed[kind] += accepted < drafted
        self._accepted += _SMOOTHING * (sum(outcome.accepted) / rows - self._accepted)
        if self._accepted >= _MIN_ACCEPTED:
            self._pause = 1
        else:
            self._pause = min(2 * self._pause, _MAX_PAUSE)
            self._paused = self._pause

    def _fade(self) -> None:
        for counts in (self._passed, self._failed):
            for kind in counts:
                counts[kind] *= 1 - 1 / _MEMORY

    def _longest(self, rows: int) -> int:
        """The longest draft to make for each of so many rows."""
        if self._costs.draft is not None:
            return self.length(rows, MODEL_DRAFT)
        # which kind a copy has is known when it is made
        kinds = [*self._failed, _UNTRIED]
        return sys.maxsize if any(self.length(rows, kind) for kind in kinds) else 0

    def length(self, rows: int, kind: int) -> int:
        """The best length for drafts of a kind among so many rows."""
        passed = self._passed.get(kind, 0.0) + _PRIOR_RATE * _PRIOR_TRIES
        failed = self._failed.get(kind, 0.0) + (1 - _PRIOR_RATE) * _PRIOR_TRIES
        percent = round(100 * passed / (passed + failed))
        key = rows, percent, self._attention
        if key not in self._best:
            self._best[key] = self._find(rows, percent / 100)
        return self._best[key]

    def _find(self, rows: int, rate: float) -> int:
        costs = self._costs
        longest = _LONGEST if costs.draft is None else costs.draft.block_size
        committed = accumulate(rate**place for place in range(longest + 1))  # G
        speeds = [
            tokens / costs.iteration(rows, length, self._attention)
            for length, tokens in enumerate(committed)
        ]
        best = speeds.index(max(speeds))
        if speeds[best] < _MIN_SPEEDUP * speeds[0]:
            return 0
        return sys.maxsize if costs.draft is None and best == _LONGEST else best
