"""How far a beam search looks ahead: as far as makes a pass bring the most prefixes for its cost.

    u(i)  probability that the search comes to a prefix that was scored i steps ahead of it
    G   = n_0 + sum over steps i of n_i u(i)          useful prefixes of a pass: n_0 are those that the search waits for
    C   = c_0 / B + n_0 + sum over steps i of n_i     its cost to one of B sentences, in rows of the verifier

Every step of a search needs about as many prefixes, whichever pass has scored them: so the fewer passes bring them, the
better. A simulated step more is worth its prefixes while u(i) > G / C, the rule of `goodput`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.planner import AheadSchedule

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


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns which prefixes are used, from batch to batch."""

    def __init__(self, least: float) -> None:
        """
        Args:
            least: c_0, rows that cost as much as all that is paid once a pass (`costs.of_call`).
        """
        self._least = least
        self._scored = [0.0] * _DISTANCES
        self._used = [0.0] * _DISTANCES

    def is_worth_it(self, group: Sequence[int], sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.is_worth_it`."""
        prefixes = sum(group)
        if prefixes > _MOST:
            return False
        shares = self.shares()
        useful = group[0] + sum(
            count * shares[min(place, _DISTANCES - 1)] for place, count in enumerate(group[1:-1], start=1)
        )
        return shares[min(len(group) - 1, _DISTANCES - 1)] * (self._least / sentences + prefixes - group[-1]) > useful

    def learn(self, distance: int, was_used: bool) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn`."""
        place = min(distance, _DISTANCES - 1)
        if self._scored[place] >= _MEMORY:
            self._scored[place] /= 2
            self._used[place] /= 2
        self._scored[place] += 1
        self._used[place] += was_used

    def shares(self) -> list[float]:
        """u(0), u(1), ..."""
        shares = [1.0]
        share = _UNSEEN
        for scored, used in zip(self._scored[1:], self._used[1:], strict=True):
            share = (used + _PRIOR * share) / (scored + _PRIOR)
            shares.append(share)
        return shares
