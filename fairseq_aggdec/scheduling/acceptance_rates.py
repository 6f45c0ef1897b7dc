"""Acceptance rates of draft tokens by kind of draft and by position, learnt while decoding."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

_MAX_TRIES = 200
"""tries of a position at which its counts are halved"""
_HALF_LIFE = 2000
"""row iterations after which all counts are halved, so that a kind that was not tried for long is tried again"""
_ESTIMATE_INTERVAL = 100
"""row iterations between two estimates of all chances"""
_STALE_SHARE = 0.1
"""share of new tries of a kind at which its chances are estimated earlier"""
_PRIOR_TRIES = 4.0
"""weight, in tries, of the prior of a position: the acceptance rate of the position before it"""
_TRACKED_POSITIONS = 16
"""positions of a draft with a rate of their own; later positions share the last rate"""
MAX_STREAK = 3
"""largest number of failed drafts in succession that is distinguished"""


@dataclass
class _Record:
    """Counts of a kind of draft: how often each position was tried, and how often it passed."""

    tried: list[float] = field(default_factory=lambda: [0.0] * _TRACKED_POSITIONS)
    passed: list[float] = field(default_factory=lambda: [0.0] * _TRACKED_POSITIONS)
    since_estimate: int = 0
    """drafts since the last estimate"""

    def fade(self, factor: float) -> None:
        self.tried = [count * factor for count in self.tried]
        self.passed = [count * factor for count in self.passed]


class AcceptanceRates:
    """a_k(i): the probability that the first i tokens of a draft of kind k all pass.

    A model's draft gets less certain towards its end, and a copy more certain: each position has a rate of its own.
    Each number of failed drafts in succession has rates of its own, too: where an output has left its source for good,
    copies are still found and always fail, which the average over all rows would hide.
    """

    def __init__(self, acceptance: float) -> None:
        """`acceptance`: the prior probability that a token passes after tokens that have passed."""
        self._acceptance = acceptance
        self._records: dict[tuple[Hashable, int], _Record] = defaultdict(_Record)
        self._known: dict[Hashable, dict[int, list[float]]] = {}  # the last estimates, by kind and streak
        self._since_fading = 0  # row iterations

    def chances(self, kind: Hashable, failures: int, length: int) -> list[float]:
        """a(1) to a(length), or beyond, for a draft of a row with `failures` failed drafts in succession."""
        streak = min(failures, MAX_STREAK)
        of_kind = self._known.setdefault(kind, {})
        known = of_kind.get(streak)
        if known is None:
            known = of_kind[streak] = self._estimate(kind, streak)
        if len(known) < length:
            passes = known[-1] / known[-2] if known[-1] else 0.0
            known += [known[-1] * passes**place for place in range(1, length - len(known) + 1)]
        return known

    def tried(self, kind: Hashable, failures: int) -> float:
        """The number of drafts after these chances; older drafts count less."""
        return sum(record.tried[0] for record in self._records_of(kind, min(failures, MAX_STREAK)))

    def fade(self, rows: int) -> None:
        """Let counts fade, after an iteration of `rows` rows."""
        self._since_fading += rows
        if self._since_fading >= _ESTIMATE_INTERVAL:
            for record in self._records.values():
                record.fade(0.5 ** (self._since_fading / _HALF_LIFE))
            self._known.clear()
            self._since_fading = 0

    def learn(self, kind: Hashable, failures: int, verified: int, accepted: int) -> None:
        """Learn from a row's draft: of `verified` tokens the first `accepted` passed."""
        if verified == 0:
            return
        streak = min(failures, MAX_STREAK)
        record = self._records[kind, streak]
        for place in range(min(accepted + 1, verified, _TRACKED_POSITIONS)):
            if record.tried[place] >= _MAX_TRIES:  # this position alone: positions that are seldom tried stay
                record.tried[place] /= 2
                record.passed[place] /= 2
            record.tried[place] += 1
            record.passed[place] += place < accepted
        record.since_estimate += 1
        if record.since_estimate > _STALE_SHARE * record.tried[0]:
            record.since_estimate = 0
            self._known.pop(kind, None)

    def _records_of(self, kind: Hashable, streak: int) -> list[_Record]:
        """The records of all streaks up to this one: the shorter ones are the prior of the longer ones."""
        return [record for fewer in range(streak + 1) if (record := self._records.get((kind, fewer))) is not None]

    def _estimate(self, kind: Hashable, streak: int) -> list[float]:
        """The chances of the tracked positions."""
        records = self._records_of(kind, streak)
        chances: list[float] = []
        all_pass, passes = 1.0, self._acceptance
        for place in range(_TRACKED_POSITIONS):
            for record in records:
                passes = (record.passed[place] + _PRIOR_TRIES * passes) / (record.tried[place] + _PRIOR_TRIES)
            all_pass *= passes
            chances.append(all_pass)
        return chances
