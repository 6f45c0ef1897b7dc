"""How far a beam search looks ahead: as far as makes a pass bring the most prefixes for its cost.

    u(i)  probability that the search comes to a prefix that was scored i steps ahead of it
    G   = n_0 + sum over steps i of n_i u(i)          useful prefixes of a pass: n_0 are those that the search waits for
    C   = c_0 / B + n_0 + sum over steps i of n_i     its cost to one of B sentences, in rows; a draft's beside it

Every step of a search needs about as many prefixes, whichever pass has scored them: so the fewer passes bring them, the
better. A simulated step more is worth its prefixes while u(i) > G / C, the rule of `goodput`, with some margin.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.planner import AheadSchedule
from fairseq_aggdec.scheduling.costs import Costs

_MOST = 96
"""prefixes of a pass: the host's own work grows with them, too"""
_DISTANCES = 24
"""steps ahead that are told apart"""
_UNSEEN = 0.8
"""how likely a prefix is taken to be used before any was seen"""
_PRIOR = 8.0
"""how many prefixes the share of the distance before counts for"""
_MEMORY = 1000
"""prefixes of a distance after which older ones count half"""


_LEAST_GAIN = 1.2
"""how many times more useful prefixes a cost a step has to promise: the host's own work counts, too"""
_PASSES = 2.0
"""for which a draft lasts"""


class _Shares:
    """u(i), learnt."""

    def __init__(self) -> None:
        self._scored = [0.0] * _DISTANCES
        self._used = [0.0] * _DISTANCES
        self._news = 0
        self._known: list[float] = []

    def learn(self, distance: int, was_used: bool) -> None:
        """Take in what has become of a prefix."""
        place = min(distance, _DISTANCES - 1)
        if self._scored[place] >= _MEMORY:
            self._scored[place] /= 2
            self._used[place] /= 2
        self._scored[place] += 1
        self._used[place] += was_used
        self._news += 1

    def estimates(self) -> list[float]:
        """u(0), u(1), ...; those of longer distances are like the last."""
        if self._news > 0 or not self._known:
            self._news = 0
            share = _UNSEEN
            self._known = [1.0]
            for scored, used in zip(self._scored[1:], self._used[1:], strict=True):
                share = (used + _PRIOR * share) / (scored + _PRIOR)
                self._known.append(share)
        return self._known


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns which prefixes are used, from batch to batch."""

    def __init__(self, costs: Costs) -> None:
        """
        Args:
            costs: of the verifier and the drafter.
        """
        self._least = costs.least
        self._draft = costs.draft
        self._shares = (_Shares(), _Shares())  # without drafts, and with them

    def is_worth_it(self, group: Sequence[int], sentences: int, drafted: bool) -> bool:
        """See `decoding.beam.planner.AheadSchedule.is_worth_it`."""
        prefixes = sum(group[:-1])
        if prefixes + group[-1] > _MOST:
            return False
        shares = self.shares(drafted)
        useful = sum(count * shares[min(place, _DISTANCES - 1)] for place, count in enumerate(group[:-1]))
        return shares[min(len(group) - 1, _DISTANCES - 1)] * (self._least / sentences + prefixes) > _LEAST_GAIN * useful

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.draft_pays`."""
        if self._draft is None:
            return True
        draft = self._draft.call / sentences + self._draft.token * self._draft.block_size
        return self._best(beam, sentences, True, draft / _PASSES) > self._best(beam, sentences, False, 0.0)

    def learn(self, distance: int, was_used: bool, drafted: bool) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn`."""
        self._shares[drafted].learn(distance, was_used)

    def shares(self, drafted: bool) -> list[float]:
        """u(0), u(1), ..."""
        return self._shares[drafted].estimates()

    def _best(self, beam: int, sentences: int, drafted: bool, draft: float) -> float:
        """The most useful prefixes for a cost, where every step takes as many as the beam has."""
        best = useful = 0.0
        cost = self._least / sentences + draft
        for share in self.shares(drafted)[: _MOST // beam]:
            useful += beam * share
            cost += beam
            best = max(best, useful / cost)
        return best
