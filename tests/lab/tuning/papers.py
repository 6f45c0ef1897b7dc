"""papers/000 Tables 6 and 7 as a sweep; seconds made up so that speed follows the mean accepted tokens."""

from fairseq_aggdec.lab.tuning.points import Baselines, Point, Setting, Sweep

GREEDY = 26.62
TABLE_6 = {10: (5.97, 26.68), 15: (6.74, 26.94), 20: (7.24, 26.75), 25: (7.56, 26.92), 30: (7.44, 26.75)}
"""by k: mean accepted tokens, BLEU; with β = 3, τ = 1"""
TABLE_7 = {
    3: [(7.56, 27.02), (8.64, 26.92), (9.46, 26.84), (10.04, 26.78), (10.38, 26.70)],
    5: [(7.58, 27.02), (8.77, 26.92), (9.72, 26.84), (10.50, 26.74), (10.99, 26.64)],
}
"""by β: the same for τ = 1, ..., 5; with k = 25"""


def point(size: int, beta: int, tolerance: float, accepted: float, quality: float) -> Point:
    return Point(Setting(size, beta, tolerance), quality, accepted, seconds=100 / accepted, greedy_seconds=200.0)


def table_7() -> list[Point]:
    return [
        point(25, beta, float(tolerance), *cell)
        for beta, column in TABLE_7.items()
        for tolerance, cell in enumerate(column, start=1)
    ]


def papers_sweep() -> Sweep:
    """Both tables; of k = 25, β = 3, τ = 1, which they give differently, Table 7's."""
    points = [point(size, 3, 1.0, *cell) for size, cell in TABLE_6.items()] + table_7()
    baselines = Baselines(5, 26.72, beam_seconds=500.0, greedy_quality=GREEDY, greedy_seconds=400.0)
    return Sweep({}, baselines, list({found.setting: found for found in points}.values()))
