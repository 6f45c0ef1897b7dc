"""The table and the figure of a sweep (papers/000 Tables 6 and 7)."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from fairseq_aggdec.lab.benchmarking.figures import MARKERS, save
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.tuning.points import Baselines, Point, Sweep, chosen


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


def draw(sweep: Sweep, quality: str, path: Path) -> None:
    """Draws quality against speed-up as PNG or SVG.

    Args:
        sweep: a sweep with baselines and at least one point.
        quality: name of the metric.
        path: path of the file, which ends with `.png` or `.svg`.
    """
    baselines = sweep.baselines
    assert baselines is not None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    for number, size in enumerate(sorted({point.setting.block_size for point in sweep.points})):
        group = [point for point in sweep.points if point.setting.block_size == size]
        at = [speed_up(point, baselines) for point in group]
        marker = MARKERS[number % len(MARKERS)]
        axis.scatter(at, [point.quality for point in group], marker=marker, label=f"k = {size}", alpha=0.8)
    axis.scatter([1.0], [baselines.beam_quality], marker="+", color="black", label=f"beam {baselines.beam}")
    greedy = baselines.beam_seconds / baselines.greedy_seconds
    axis.scatter([greedy], [baselines.greedy_quality], marker="x", color="black", label="greedy")
    axis.axhline(baselines.greedy_quality, color="grey", linestyle=":", linewidth=1)
    axis.set_xlabel(f"speed-up over beam {baselines.beam}")
    axis.set_ylabel(quality)
    axis.legend(frameon=False)
    save(figure, path)
