"""How far a beam search looks ahead: as far as makes a step of the search cost the least.

Every step needs the rows behind its N prefixes, whichever pass scores them. What can be saved are passes, and what can
be wasted are prefixes that the search never comes to. Of a pass that looks m steps ahead, for each of B sentences,

    S = 1 + s(1) + ... + s(m)      the steps that it brings: with probability s(i) more than i
    W = w(1) + ... + w(m)          what it wastes: w(i) = n_i (1 - u(i)) + h of the n_i prefixes that step i adds, where
                                   u(i) is the probability that one is used, and h is the host's work for a step
    choose m to minimise (c_0 / B + W) / S

A step more is worth it while w(i) / s(i) is less than that quotient. Costs are in rows: what one prefix costs.
"""

from __future__ import annotations

from fairseq_aggdec.decoding.beam.planner import AheadSchedule, Reach
from fairseq_aggdec.scheduling.acceptance_rates import AcceptanceRates
from fairseq_aggdec.scheduling.costs import Costs

_UNSEEN = 0.8
"""s(i + 1) / s(i) and u(i) before any was seen"""
_DISTANCES = 24
"""steps ahead that are told apart"""
_PRIOR = 8.0
"""how many prefixes that counts for"""
_MEMORY = 1000
"""prefixes of a distance after which older ones count half"""
_HOST = 0.5
"""h"""
_LASTING = 2.0
"""passes for which a model's draft lasts"""


class _Use:
    """u(i), learnt."""

    def __init__(self) -> None:
        self._scored = [_PRIOR] * (_DISTANCES + 1)
        self._used = [_PRIOR * _UNSEEN] * (_DISTANCES + 1)

    def learn(self, distance: int, was_used: bool) -> None:
        """Take in what has become of a prefix."""
        place = min(distance, _DISTANCES)
        if self._scored[place] >= _MEMORY:
            self._scored[place] /= 2
            self._used[place] /= 2
        self._scored[place] += 1
        self._used[place] += was_used

    def share(self, distance: int) -> float:
        """u(i)"""
        place = min(distance, _DISTANCES)
        return self._used[place] / self._scored[place]


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns s and u, from batch to batch."""

    def __init__(self, costs: Costs) -> None:
        """
        Args:
            costs: of the verifier and the drafter.
        """
        self._least = costs.least
        self._draft = costs.draft
        self._going_on = AcceptanceRates(_UNSEEN)  # without a draft, and with one
        self._use = (_Use(), _Use())

    def reach(self, sentences: int, drafted: bool) -> Reach:
        """See `decoding.beam.planner.AheadSchedule.reach`."""
        return _Reach(self, self._least / sentences, drafted)

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.draft_pays`."""
        if self._draft is None:
            return True
        draft = self._draft.call / sentences + self._draft.token * self._draft.block_size
        pass_alone = self._least / sentences
        return self._step(beam, pass_alone + draft / _LASTING, True) < self._step(beam, pass_alone, False)

    def learn_steps(self, ahead: int, made: int, drafted: bool) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn_steps`."""
        self._going_on.learn(drafted, 0, ahead, min(made - 1, ahead))

    def learn_use(self, distance: int, was_used: bool, drafted: bool) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn_use`."""
        self._use[drafted].learn(distance, was_used)

    def goes_on(self, distance: int, drafted: bool) -> float:
        """s(i)"""
        return self._going_on.chances(drafted, 0, distance)[distance - 1]

    def wasted(self, prefixes: int, distance: int, drafted: bool) -> float:
        """w(i), if step i adds so many prefixes."""
        if prefixes == 0:
            return 0.0
        return prefixes * (1.0 - self._use[drafted].share(distance)) + _HOST

    def _step(self, beam: int, cost: float, drafted: bool) -> float:
        """What a step costs where each adds as many prefixes as the beam has, and a pass costs so much."""
        reach = _Reach(self, cost, drafted)
        while reach.distance < _DISTANCES and reach.pays(beam):
            reach.go_on(beam)
        return reach.cost / reach.steps


class _Reach(Reach):
    """A `decoding.beam.planner.Reach` by the formula."""

    def __init__(self, schedule: AheadGoodput, cost: float, drafted: bool) -> None:
        """
        Args:
            schedule: has what was learnt.
            cost: c_0 / B, with a draft's part.
            drafted: whether a draft is there.
        """
        self.cost = cost
        """c_0 / B + W"""
        self.steps = 1.0
        """S"""
        self.distance = 1
        """i, of the next step ahead"""
        self._schedule = schedule
        self._drafted = drafted

    def pays(self, prefixes: int) -> bool:
        """See `decoding.beam.planner.Reach.pays`."""
        wasted = self._schedule.wasted(prefixes, self.distance, self._drafted)
        return wasted * self.steps < self.cost * self._schedule.goes_on(self.distance, self._drafted)

    def go_on(self, prefixes: int) -> None:
        """See `decoding.beam.planner.Reach.go_on`."""
        self.cost += self._schedule.wasted(prefixes, self.distance, self._drafted)
        self.steps += self._schedule.goes_on(self.distance, self._drafted)
        self.distance += 1
