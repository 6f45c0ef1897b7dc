"""How far a beam search looks ahead: as far as makes a pass bring the most steps for its cost.

    a(i)  probability that the search makes the first i steps that were simulated beyond the one it waits for
    G   = 1 + sum over i of a(i)                      steps that a pass brings
    C   = c_0 / B + prefixes that are scored          its cost to one of B sentences, in rows of the verifier

A step more is worth its prefixes while that raises G / C. It is the rule of `goodput`, with steps for draft tokens.
"""

from __future__ import annotations

from fairseq_aggdec.decoding.beam.planner import AheadSchedule
from fairseq_aggdec.scheduling.acceptance_rates import AcceptanceRates

_UNSEEN = 0.9
"""how likely a simulated step is taken to be right before any was seen"""
_MOST = 96
"""prefixes of a pass: the host's own work grows with them, too"""


class AheadGoodput(AheadSchedule):
    """A `decoding.beam.planner.AheadSchedule` that learns how often simulated steps are right, from batch to batch."""

    def __init__(self, least: float) -> None:
        """
        Args:
            least: c_0, rows that cost as much as all that is paid once a pass (`costs.of_call`).
        """
        self._least = least
        self._rates = AcceptanceRates(_UNSEEN)

    def is_worth_it(self, steps: int, prefixes: int, more: int, sentences: int) -> bool:
        """See `decoding.beam.planner.AheadSchedule.is_worth_it`."""
        if prefixes + more > _MOST:
            return False
        chances = self._rates.chances(None, 0, steps + 1)
        brings = 1.0 + sum(chances[:steps])
        return chances[steps] * (self._least / sentences + prefixes) > brings * more

    def learn(self, planned: int, made: int) -> None:
        """See `decoding.beam.planner.AheadSchedule.learn`."""
        self._rates.learn(None, 0, planned, made)
