"""Which settings to take (papers/000 §4.2.3: "high-quality" and "high-efficiency").

The papers choose by eye. The rule here, on the development set:

- high-quality: the fastest setting that scores at least as high as greedy decoding, by a margin if one is asked for;
- high-efficiency: the fastest setting that scores at most `loss` below greedy decoding.

With a margin of 0.4 and a loss of -0.2 (0.2 above greedy) papers/000 Table 7 gives β = 5, τ = 1 and β = 5, τ = 3;
the authors took β = 3, τ = 1 and β = 5, τ = 3. Without either it gives β = 5, τ = 5. Scores of a development set are
uncertain: choose margins accordingly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairseq_aggdec.lab.tuning.points import Point, Setting


def fastest(points: Iterable[Point], least_quality: float) -> Point | None:
    """The fastest point that is good enough; None if none is.

    Speed is that over greedy decoding in the same rounds. Of equally fast points the better, then the smaller setting.
    """
    enough = [point for point in points if point.quality >= least_quality]
    return min(enough, key=lambda point: (-point.speed_up_over_greedy, -point.quality, point.setting), default=None)


def high_quality(points: Iterable[Point], greedy_quality: float, margin: float = 0.0) -> Point | None:
    """The fastest point without loss against greedy decoding."""
    return fastest(points, greedy_quality + margin)


def high_efficiency(points: Iterable[Point], greedy_quality: float, loss: float = 0.5) -> Point | None:
    """The fastest point that loses little."""
    return fastest(points, greedy_quality - loss)


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other is both faster and better than, the fastest last."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.speed_up_over_greedy, -point.quality, point.setting)):
        if not front or point.quality > front[-1].quality:
            front.append(point)
    return front[::-1]


def block_sizes_first(sizes: Sequence[int], betas: Sequence[int], tolerances: Sequence[float]) -> list[Setting]:
    """The settings of papers/000 Table 6: every block size with the first β and τ."""
    return [Setting(size, betas[0], tolerances[0]) for size in sizes]


def grid(sizes: Sequence[int], betas: Sequence[int], tolerances: Sequence[float]) -> list[Setting]:
    """All settings; of one block size those of papers/000 Table 7."""
    return [Setting(size, beta, tolerance) for size in sizes for beta in betas for tolerance in tolerances]
