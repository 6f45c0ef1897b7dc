"""How far a beam search looks ahead: as far as makes a pass bring the most prefixes for its cost.

    u(i)  probability that the search comes to a prefix that was scored i steps ahead of it
    G   = n_0 + sum over steps i of n_i u(i)          useful prefixes of a pass: n_0 are those that the search waits for
    n   = n_0 + sum over steps i of n_i               its prefixes
    C   = (c_0 + max(c_read, B n)) / B + c_host n     its cost to each of B sentences, in rows of the verifier:
                                                      c_host is the host's work on a prefix

Every step of a search needs about as many prefixes, whichever pass has scored them: so the fewer passes bring them, the
better. A step ahead is worth its prefixes while they raise G / C, the rule of `goodput`, with some margin; it is taken
to have n_0 of them. A draft of k tokens serves k steps, each of as many prefixes as the beam has.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.planner import AheadSchedule, Reach
from fairseq_aggdec.scheduling.costs import Costs

_DISTANCES = 24
"""steps ahead that are told apart"""
_UNSEEN = 0.8
"""u(i) before any was seen"""
_PRIOR = 8.0
"""as many prefixes as that counts for"""
_MEMORY = 1000
"""prefixes of a distance after which older ones count half"""
_LEAST_GAIN = 1.1
"""a step ahead or a draft has to promise at least this many times as many useful prefixes for its cost"""


class _Shares:
    """u(i), learnt."""

    def __init__(self) -> None:
        self._scored = [_PRIOR] * (_DISTANCES + 1)
        self._used = [_PRIOR * _UNSEEN] * (_DISTANCES + 1)

    def learn(self, scored: Sequence[tuple[int, bool]]) -> None:
        """Take in what has become of prefixes: how many steps ahead each was scored, and whether it was used."""
        for distance, was_used in scored:
            place = distance if distance < _DISTANCES else _DISTANCES
            if self._scored[place] >= _MEMORY:
                self._scored[place] /= 2
                self._used[place] /= 2
            self._scored[place] += 1
            self._used[place] += was_used

    def of(self, distance: int) -> float:
        """u(i)"""
        place = min(distance, _DISTANCES)
        return self._used[place] / self._scored[place]


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns which prefixes are used, from batch to batch."""

    def __init__(self, costs: Costs) -> None:
        """
        Args:
            costs: of the verifier and the drafter.
        """
        self._costs = costs
        self._shares = (_Shares(), _Shares())  # without a draft, and with one
        self._asks: dict[tuple[int, int], bool] = {}  # `draft_pays`, as long as nothing is learnt

    def pays(self, beam: int, sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.pays`."""
        asks = self._costs.draft is not None and self.draft_pays(beam, sentences)
        return asks or self.reach(beam, sentences, False).pays()

    def reach(self, needed: int, sentences: int, drafted: bool) -> Reach:
        """See `decoding.beam.planner.AheadSchedule.reach`."""
        return _Reach(self._shares[drafted], self._costs, needed, sentences)

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.draft_pays`."""
        model = self._costs.draft
        if model is None:
            return True
        if (beam, sentences) not in self._asks:
            draft = model.whole(sentences * model.block_size, 0) / sentences
            drafted = self._cost(beam, sentences, True) + draft / (model.block_size * beam)
            self._asks[beam, sentences] = _LEAST_GAIN * drafted < self._cost(beam, sentences, False)
        return self._asks[beam, sentences]

    def learn(self, scored: Sequence[tuple[int, bool]], drafted: bool) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn`."""
        self._shares[drafted].learn(scored)
        self._asks.clear()

    def _cost(self, beam: int, sentences: int, drafted: bool) -> float:
        """C / G where every step takes as many prefixes as the beam has."""
        reach = _Reach(self._shares[drafted], self._costs, beam, sentences)
        while reach.distance < _DISTANCES and reach.pays():
            reach.go_on(beam)
        return reach.cost / reach.useful


class _Reach(Reach):
    """A `decoding.beam.planner.Reach` by the formula."""

    def __init__(self, shares: _Shares, costs: Costs, needed: int, sentences: int) -> None:
        """
        Args:
            shares: of prefixes that are used.
            costs: of the verifier.
            needed: n_0.
            sentences: B.
        """
        self.useful = float(needed)
        """G"""
        self.distance = 1
        """i, of the next step ahead"""
        self._shares, self._costs, self._needed, self._sentences = shares, costs, needed, sentences
        self._prefixes = needed
        self.cost = self._cost_of(needed)
        """C"""

    def _cost_of(self, prefixes: int) -> float:
        costs, sentences = self._costs, self._sentences
        return costs.rows(sentences * prefixes) / sentences + costs.host * prefixes

    def pays(self) -> bool:
        """See `decoding.beam.planner.Reach.pays`."""
        more = self._cost_of(self._prefixes + self._needed) - self.cost
        return self._needed * self._shares.of(self.distance) * self.cost > _LEAST_GAIN * self.useful * more

    def go_on(self, prefixes: int) -> None:
        """See `decoding.beam.planner.Reach.go_on`."""
        self.useful += prefixes * self._shares.of(self.distance)
        self._prefixes += prefixes
        self.cost = self._cost_of(self._prefixes)
        self.distance += 1
