"""Chooses settings of GAD++: "high-quality" and "high-efficiency" (papers/000 §4.2.3).

The paper gives no rule. The rule here, on the development set:

- high-quality: the fastest setting that scores at least `margin` above greedy decoding (by default 0);
- high-efficiency: the fastest setting that scores at most `loss` below greedy decoding.

On the numbers of papers/000 Table 7, a margin of 0.4 and a loss of -0.2 (0.2 above greedy) choose β = 5, τ = 1 and
β = 5, τ = 3; the authors took β = 3, τ = 1 and β = 5, τ = 3. A margin and a loss of 0 choose β = 5, τ = 5 for both. The
scores of a development set are uncertain, so the margin should not be too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairseq_aggdec.lab.tuning.points import Point


def fastest(points: Iterable[Point], least_quality: float) -> Point | None:
    """The fastest point with at least this quality; None if there is none.

    Speed is the speed-up over greedy decoding in the same rounds. Of equally fast points, the one with the higher
    quality wins, then the smaller setting.
    """
    good = [point for point in points if point.quality >= least_quality]
    return min(good, key=lambda point: (-point.speed_up_over_greedy, -point.quality, point.setting), default=None)


def chosen(points: Sequence[Point], greedy_quality: float, margin: float, loss: float) -> dict[str, Point | None]:
    """The point of each name that the rule chooses; None where no point is good enough."""
    return {
        "high-quality": fastest(points, greedy_quality + margin),
        "high-efficiency": fastest(points, greedy_quality - loss),
    }


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other point beats in both speed and quality, the fastest last."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.speed_up_over_greedy, -point.quality, point.setting)):
        if not front or point.quality > front[-1].quality:
            front.append(point)
    return front[::-1]
