"""How likely draft tokens pass, by what led to the draft and by position, learnt while decoding."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

_MEMORY = 200
"""how often a position is tried before its older tries count half"""
_HALF_LIFE = 2000
"""after so many iterations of rows, all that was learnt counts half. What has not been tried for long is forgotten: it
is then taken to be as good as at first, and is tried again"""
_REFRESHED = 100
"""after so many iterations of rows, all chances are estimated anew"""
_STALE = 0.1
"""the chances of a kind are estimated anew earlier once this share of its tries is newer than the estimate"""
_PRIOR = 4.0
"""a position starts from the acceptance rate of the one before it, as if it had been tried so many times"""
_POSITIONS = 16
"""positions of a draft that have a rate of their own; those behind share the last one's"""
LONGEST_STREAK = 3
"""failed drafts of a row in succession that are told apart; more count as so many"""


@dataclass
class _Record:
    """How often each position of a draft was tried, and how often it passed."""

    tried: list[float] = field(default_factory=lambda: [0.0] * _POSITIONS)
    passed: list[float] = field(default_factory=lambda: [0.0] * _POSITIONS)
    since_estimate: int = 0
    """drafts"""

    def fade(self, factor: float) -> None:
        self.tried = [count * factor for count in self.tried]
        self.passed = [count * factor for count in self.passed]


class AcceptanceRates:
    """a_k(i): the probability that the first i tokens of a draft of kind k all pass.

    A model's draft gets less certain towards its end, and a copy more: so each position has a rate of its own. So has
    each number of drafts of a row that have just failed in succession: where an output has left its source for good,
    copies are still found and always fail, which the average over all rows would not show.
    """

    def __init__(self, acceptance: float) -> None:
        """`acceptance`: the probability of a token to pass behind others that have passed, before any was seen."""
        self._acceptance = acceptance
        self._records: dict[tuple[Hashable, int], _Record] = defaultdict(_Record)
        self._known: dict[Hashable, dict[int, list[float]]] = {}  # chances by kind and streak, as estimated last
        self._seen = 0  # iterations of rows since all was estimated anew

    def chances(self, kind: Hashable, failures: int, length: int) -> list[float]:
        """a(1), a(2), ... a(length), maybe more, of a draft of a kind; the row's last so many have failed."""
        streak = min(failures, LONGEST_STREAK)
        of_kind = self._known.setdefault(kind, {})
        known = of_kind.get(streak)
        if known is None:
            known = of_kind[streak] = self._estimate(kind, streak)
        if len(known) < length:
            passes = known[-1] / known[-2] if known[-1] else 0.0
            known += [known[-1] * passes**place for place in range(1, length - len(known) + 1)]
        return known

    def tried(self, kind: Hashable, failures: int) -> float:
        """How many drafts such chances rest on; older ones count less."""
        return sum(record.tried[0] for record in self._records_of(kind, min(failures, LONGEST_STREAK)))

    def fade(self, rows: int) -> None:
        """Forget a little: there was an iteration of so many rows."""
        self._seen += rows
        if self._seen >= _REFRESHED:
            for record in self._records.values():
                record.fade(0.5 ** (self._seen / _HALF_LIFE))
            self._known.clear()
            self._seen = 0

    def learn(self, kind: Hashable, failures: int, verified: int, accepted: int) -> None:
        """Take in what became of a row's draft: of so many tokens, maybe none, the first few passed."""
        if verified == 0:
            return
        streak = min(failures, LONGEST_STREAK)
        record = self._records[kind, streak]
        for place in range(min(accepted + 1, verified, _POSITIONS)):
            if record.tried[place] >= _MEMORY:  # of this position alone: one that is seldom tried is not forgotten
                record.tried[place] /= 2
                record.passed[place] /= 2
            record.tried[place] += 1
            record.passed[place] += place < accepted
        record.since_estimate += 1
        if record.since_estimate > _STALE * record.tried[0]:
            record.since_estimate = 0
            self._known.pop(kind, None)

    def _records_of(self, kind: Hashable, streak: int) -> list[_Record]:
        """Those of fewer failures, too: they tell most of a streak that has not been seen yet."""
        return [record for fewer in range(streak + 1) if (record := self._records.get((kind, fewer))) is not None]

    def _estimate(self, kind: Hashable, streak: int) -> list[float]:
        """The chances of positions that are told apart."""
        records = self._records_of(kind, streak)
        chances: list[float] = []
        all_pass, passes = 1.0, self._acceptance
        for place in range(_POSITIONS):
            for record in records:
                passes = (record.passed[place] + _PRIOR * passes) / (record.tried[place] + _PRIOR)
            all_pass *= passes
            chances.append(all_pass)
        return chances
