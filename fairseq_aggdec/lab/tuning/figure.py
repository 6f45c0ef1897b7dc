"""Draws quality against speed-up for the points of a sweep, with their Pareto front, as PNG or SVG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from fairseq_aggdec.lab.benchmarking.figures import MARKERS, save
from fairseq_aggdec.lab.tuning.choice import pareto_front
from fairseq_aggdec.lab.tuning.points import Point, Sweep
from fairseq_aggdec.lab.tuning.tables import speed_up

_CHOSEN = ("tab:red", "tab:purple")


def draw(sweep: Sweep, quality: str, chosen: Mapping[str, Point | None], path: Path) -> None:
    """Draws a sweep.

    Args:
        sweep: a sweep with baselines and at least one point.
        quality: name of the metric.
        chosen: points to mark, by the name in the legend.
        path: path of the file, which ends with `.png` or `.svg`.
    """
    baselines = sweep.baselines
    assert baselines is not None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    points = list(sweep.points.values())
    for number, size in enumerate(sorted({point.setting.block_size for point in points})):
        group = [point for point in points if point.setting.block_size == size]
        at = [speed_up(point, baselines) for point in group]
        heights = [point.quality for point in group]
        axis.scatter(at, heights, marker=MARKERS[number % len(MARKERS)], label=f"k = {size}", alpha=0.8, s=22)
    front = pareto_front(points)
    axis.plot(
        [speed_up(point, baselines) for point in front],
        [point.quality for point in front],
        color="black",
        linewidth=1,
        label="Pareto front",
    )
    greedy = baselines.beam_seconds / baselines.greedy_seconds
    for name, speed, height in (
        (f"beam {baselines.beam}", 1.0, baselines.beam_quality),
        ("greedy", greedy, baselines.greedy_quality),
    ):
        axis.scatter([speed], [height], marker="+", color="black", s=60)
        axis.annotate(name, (speed, height), textcoords="offset points", xytext=(6, -10), fontsize=8)
    axis.axhline(baselines.greedy_quality, color="grey", linestyle=":", linewidth=1)
    names: dict[Point, list[str]] = {}
    for name, point in chosen.items():
        if point is not None:
            names.setdefault(point, []).append(name)
    for number, (point, called) in enumerate(names.items()):  # named in the legend, since points lie close together
        axis.scatter(
            [speed_up(point, baselines)],
            [point.quality],
            s=130,
            facecolors="none",
            edgecolors=_CHOSEN[number % len(_CHOSEN)],
            label="\n".join([*called, str(point.setting)]),
        )
    axis.margins(x=0.15, y=0.2)
    axis.set_xlabel(f"speed-up over beam {baselines.beam}")
    axis.set_ylabel(quality)
    axis.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, labelspacing=0.8)
    save(figure, path)
