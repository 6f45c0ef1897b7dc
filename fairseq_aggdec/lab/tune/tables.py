"""The table of a sweep (papers/000 Tables 6 and 7)."""

from __future__ import annotations

from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.tune.points import Baselines, Point, Sweep, chosen


def speed_up(point: Point, baselines: Baselines) -> float:
    """Speed-up over beam search: that over greedy decoding, times that of greedy decoding over beam search."""
    return point.speed_up_over_greedy * baselines.beam_seconds / baselines.greedy_seconds


def table(sweep: Sweep, quality: str, margin: float, loss: float) -> str:
    """Mean accepted tokens, quality and speed of each setting, and which settings the rule of `points` chooses.

    Args:
        sweep: a sweep with baselines.
        quality: name of the metric.
        margin, loss: see `points`.
    """
    baselines = sweep.baselines
    assert baselines is not None
    greedy_speed = baselines.beam_seconds / baselines.greedy_seconds
    rows = [
        [f"beam {baselines.beam}", "", "", "", "1.00", f"{baselines.beam_quality:.2f}", "1.00x", ""],
        ["greedy", "", "", "", "1.00", f"{baselines.greedy_quality:.2f}", f"{greedy_speed:.2f}x", ""],
    ]
    names = chosen(sweep, margin, loss)
    for point in sorted(sweep.points, key=lambda point: point.setting):
        setting = point.setting
        cells = [str(setting.block_size), str(setting.beta), f"{setting.tolerance:g}", f"{point.accepted:.2f}"]
        called = ", ".join(name for name, best in names.items() if best == point)
        rows.append(["gad++", *cells, f"{point.quality:.2f}", f"{speed_up(point, baselines):.2f}x", called])
    lines = [text_table(["", "k", "β", "τ", "Tok.", quality, "speed", "chosen"], rows)]
    lines += [f"{name}: none of these settings" for name, best in names.items() if best is None]
    return "\n".join(lines)
