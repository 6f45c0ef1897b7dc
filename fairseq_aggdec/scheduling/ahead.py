"""How far a beam search looks ahead: as far as maximises the useful prefixes of a pass for its cost.

    u(i)  probability that the search reaches a prefix scored i steps ahead of it
    G   = n_0 + sum over steps i of n_i u(i)          useful prefixes of a pass; the search waits for n_0 prefixes
    n   = n_0 + sum over steps i of n_i               all prefixes of the pass
    C   = (c_0 + max(c_read, B n)) / B + c_host n     cost of the pass for each of B sentences, in rows of the verifier;
                                                      c_host is the host's work on a prefix

A search step needs about the same number of prefixes, whichever pass has scored them, so fewer passes are better. A
step ahead is scored while its prefixes, assumed to be n_0, raise G / C by some margin, as in `goodput`. A draft of k
tokens serves k steps of one beam each.
"""

from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.planner import AheadSchedule, Reach
from fairseq_aggdec.scheduling.costs import Costs

_MAX_DISTANCE = 24
"""largest number of steps ahead that is distinguished"""
_PRIOR_SHARE = 0.8
"""prior of u(i)"""
_PRIOR_COUNT = 8.0
"""weight of the prior, in prefixes"""
_MAX_COUNT = 1000
"""prefixes of a distance at which its counts are halved"""
_MIN_GAIN = 1.1
"""least factor by which a step ahead or a draft must raise the useful prefixes for their cost"""


class _Shares:
    """Estimates of u(i)."""

    def __init__(self) -> None:
        self._scored = [_PRIOR_COUNT] * (_MAX_DISTANCE + 1)
        self._used = [_PRIOR_COUNT * _PRIOR_SHARE] * (_MAX_DISTANCE + 1)

    def learn(self, scored: Sequence[tuple[int, bool]]) -> None:
        """Learn from prefixes: the steps ahead at which each was scored, and whether the search used it."""
        for distance, was_used in scored:
            place = distance if distance < _MAX_DISTANCE else _MAX_DISTANCE
            if self._scored[place] >= _MAX_COUNT:
                self._scored[place] /= 2
                self._used[place] /= 2
            self._scored[place] += 1
            self._used[place] += was_used

    def of(self, distance: int) -> float:
        place = min(distance, _MAX_DISTANCE)
        return self._used[place] / self._scored[place]


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns which prefixes are used, from batch to batch."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._shares = (_Shares(), _Shares())  # without a draft, and with one
        self._pays_cache: dict[tuple[int, int], bool] = {}  # results of `draft_pays` until the next `learn`

    def pays(self, beam: int, sentences: int) -> bool:
        drafts = self._costs.draft is not None and self.draft_pays(beam, sentences)
        return drafts or self.reach(beam, sentences, False).pays()

    def reach(self, needed: int, sentences: int, drafted: bool) -> Reach:
        return _Reach(self._shares[drafted], self._costs, needed, sentences)

    def draft_pays(self, beam: int, sentences: int) -> bool:
        model = self._costs.draft
        if model is None:
            return True
        if (beam, sentences) not in self._pays_cache:
            draft = model.whole(sentences, model.block_size, 0) / sentences
            drafted = self._cost(beam, sentences, True) + draft / (model.block_size * beam)
            self._pays_cache[beam, sentences] = _MIN_GAIN * drafted < self._cost(beam, sentences, False)
        return self._pays_cache[beam, sentences]

    def learn(self, scored: Sequence[tuple[int, bool]], drafted: bool) -> None:
        self._shares[drafted].learn(scored)
        self._pays_cache.clear()

    def _cost(self, beam: int, sentences: int, drafted: bool) -> float:
        """C / G where every step has a prefix for each hypothesis of the beam."""
        reach = _Reach(self._shares[drafted], self._costs, beam, sentences)
        while reach.distance < _MAX_DISTANCE and reach.pays():
            reach.extend(beam)
        return reach.cost / reach.useful


class _Reach(Reach):
    """A `decoding.beam.planner.Reach` that maximises G / C; `needed` is n_0, `sentences` B."""

    def __init__(self, shares: _Shares, costs: Costs, needed: int, sentences: int) -> None:
        self.useful = float(needed)
        """G"""
        self.distance = 1
        """i of the next step ahead"""
        self._shares, self._costs, self._needed, self._sentences = shares, costs, needed, sentences
        self._prefixes = needed
        self.cost = self._cost_of(needed)
        """C"""

    def _cost_of(self, prefixes: int) -> float:
        costs, sentences = self._costs, self._sentences
        return costs.rows(sentences * prefixes) / sentences + costs.host * prefixes

    def pays(self) -> bool:
        more = self._cost_of(self._prefixes + self._needed) - self.cost
        return self._needed * self._shares.of(self.distance) * self.cost > _MIN_GAIN * self.useful * more

    def extend(self, prefixes: int) -> None:
        self.useful += prefixes * self._shares.of(self.distance)
        self._prefixes += prefixes
        self.cost = self._cost_of(self._prefixes)
        self.distance += 1
