"""How much a model drafts where padding is free: the size with the most tokens in the measured time of its passes.

A pass takes the same time for all widths of a bucket, so only the longest draft of each bucket is a size to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from fairseq_aggdec.decoding.roles import DraftSchedule
from fairseq_aggdec.scheduling.acceptance_rates import AcceptanceRates

if TYPE_CHECKING:
    from fairseq_aggdec.decoding.outputs import Outputs
    from fairseq_aggdec.decoding.tokens import Draft, Outcome

_PRIOR_RATE = 0.9
"""prior acceptance rate"""


class MeasuredGoodput(DraftSchedule):
    """A schedule that learns how often draft tokens pass, from batch to batch."""

    def __init__(self, sizes: Sequence[int], kind: Hashable) -> None:
        """`sizes`: of the drafts to choose from, ascending from 0; `kind`: of all drafts."""
        self.time_of: Callable[[int, int], float | None] = lambda rows, size: None
        """the time of an iteration of so many rows with drafts of a size; None where it has not been measured"""
        self._sizes, self._kind = sizes, kind
        self._rates = AcceptanceRates(_PRIOR_RATE)

    def limits(self, outputs: Outputs) -> list[int]:
        """The same size for all rows. Whole drafts are measured first.

        Another size that has not been measured is assumed to take no longer than the next smaller one, so that it is
        tried once where it may pay.
        """
        rows, longest = len(outputs.rows), self._sizes[-1]
        if self.time_of(rows, longest) is None:
            return [longest] * rows
        tokens = list(accumulate(self._rates.chances(self._kind, 0, longest), initial=1.0))  # of a row, by size from 0
        times = list(accumulate((self.time_of(rows, size) or 0.0 for size in self._sizes), max))
        gains = [tokens[size] / time if time else math.inf for size, time in zip(self._sizes, times, strict=True)]
        return [self._sizes[gains.index(max(gains))]] * rows

    def trim(self, draft: Draft) -> Draft:
        return draft

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        self._rates.fade(len(outcome.drafted))
        for drafted, accepted in zip(outcome.drafted, outcome.accepted, strict=True):
            self._rates.learn(self._kind, 0, drafted, accepted)
