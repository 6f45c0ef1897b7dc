"""Draws figures of a record as PNG and SVG, after those of Ge et al. 2022 (papers/000)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking.record import Record, Run
from fairseq_aggdec.lab.benchmarking.tables import BASELINES

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_COLOURS = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
MARKERS = "osD^vP*X<>"


def draw(record: Record, folder: Path, stem: str) -> list[Path]:
    """Draw all figures that a record has the numbers for.

    Args:
        record: a benchmark's record.
        folder: where the files go; created if needed.
        stem: how the files' names begin.

    Returns:
        the paths of the files.
    """
    paths = []
    with matplotlib.rc_context(_STYLE):
        for name, make in FIGURES.items():
            figure = make(record)
            if figure is None:
                continue
            for suffix in ("png", "svg"):
                path = folder / f"{stem}_{name}.{suffix}"
                save(figure, path, tight=True)
                paths.append(path)
    return paths


def save(figure: Figure, path: Path, tight: bool = False) -> None:
    """Write a figure as PNG or SVG, as the path ends; the same figure gives the same bytes every time.

    Args:
        figure: the figure.
        path: path of the file, which ends with `.png` or `.svg`.
        tight: cut off empty margins.
    """
    kind = path.suffix.removeprefix(".")
    undated = {"Date": None} if kind == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "aggdec"}), written_whole(path) as partial:
        figure.savefig(partial, format=kind, dpi=150, bbox_inches="tight" if tight else None, metadata=undated)


def _baseline(runs: Sequence[Run]) -> Run:
    return next((run for name in BASELINES for run in runs if run.mode == name), runs[0])


def speed_up_distribution(record: Record) -> Figure | None:
    """Histograms of the sentences' speed-ups over beam search, a panel for each mode (papers/000 Figure 8)."""
    runs = record.at(min(record.batch_sizes))
    baseline = _baseline(runs)
    others = [run for run in runs if run is not baseline]
    if not others:
        return None
    speed_ups = [_speed_ups(run, baseline) for run in others]
    columns = min(3, len(others))
    rows = -(-len(others) // columns)
    figure = Figure(figsize=(3 * columns, 2 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    last = float(np.percentile(np.concatenate(speed_ups), 99.5))
    bins = np.linspace(0, max(1.0, last) * 1.05, 31)
    for number, axis in enumerate(axes.flat):
        if number >= len(others):
            axis.set_visible(False)
            continue
        middle = float(np.median(speed_ups[number]))
        axis.hist(np.clip(speed_ups[number], bins[0], bins[-1]), bins=bins, color=_COLOURS[0])
        axis.axvline(middle, color="black", linewidth=1)
        axis.set_title(f"{others[number].mode}: median {middle:.1f}x", fontsize=9)
        axis.xaxis.set_tick_params(labelbottom=number + columns >= len(others))
    figure.supxlabel(f"speed-up of a sentence over {baseline.mode}, batch size {baseline.batch_size}", fontsize=9)
    figure.supylabel("sentences", fontsize=9)
    return figure


def edit_ratio_figure(record: Record) -> Figure | None:
    """Speed-up over greedy decoding against edit ratio (papers/000 Figure 5), for the modes that copy their input."""
    runs = record.at(min(record.batch_sizes))
    greedy = next((run for run in runs if run.mode == "greedy"), None)
    copying = [run for run in runs if run.mode.partition("@")[0].partition("~")[0] == "iad"]
    if greedy is None or not copying or not record.edit_ratios:
        return None
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axis = figure.subplots()
    ratios = np.array(record.edit_ratios)
    all_speed_ups = [_speed_ups(run, greedy) for run in copying]
    right, top = _axis_end(ratios, 0.05), _axis_end(np.concatenate(all_speed_ups), 1.0)
    outside = np.zeros(len(ratios), dtype=bool)
    for number, (run, speed_ups) in enumerate(zip(copying, all_speed_ups, strict=True)):
        outside |= (ratios > right) | (speed_ups > top)
        colour = _COLOURS[number % len(_COLOURS)]
        axis.scatter(ratios, speed_ups, s=8, alpha=0.35, color=colour, linewidths=0, rasterized=True)
        centres, middles = _medians(ratios, speed_ups)
        axis.plot(centres, middles, color=colour, marker=MARKERS[number % len(MARKERS)], label=f"{run.mode}, median")
    axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
    if outside.any():
        axis.set_title(f"{outside.sum()} of {len(ratios)} sentences lie outside", fontsize=8, loc="right")
    axis.set_xlabel("edit ratio (edits between input and output, over the input's length)")
    axis.set_ylabel("speed-up over greedy")
    axis.set_xlim(-0.02 * right, right)
    axis.set_ylim(0, top)
    axis.legend(frameon=False)
    return figure


def batch_size_figure(record: Record) -> Figure | None:
    """Speed-ups against batch size.

    They are over beam search at the largest size (papers/000 Figures 6 and 7), and at the same size.
    """
    sizes = record.batch_sizes
    if len(sizes) < 2:
        return None
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    baseline = {size: _baseline(record.at(size)) for size in sizes}
    largest_size = max(sizes)
    largest = baseline[largest_size]
    name = largest.mode
    for number, mode in enumerate(dict.fromkeys(run.mode for run in record.runs)):
        runs = sorted((run for run in record.runs if run.mode == mode), key=lambda run: run.batch_size)
        look = {
            "color": _COLOURS[number % len(_COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": "-" if number < len(_COLOURS) else "--",
            "markersize": 4,
        }
        at = [run.batch_size for run in runs]
        left.plot(at, [largest.seconds / run.seconds for run in runs], label=mode, **look)
        right.plot(at, [baseline[run.batch_size].seconds / run.seconds for run in runs], **look)
    milliseconds = 1e3 * largest.seconds / len(largest.tokens)
    left.set_title(f"speed-up over {name}, batch size {largest_size} ({milliseconds:.3g} ms a sentence)", fontsize=9)
    left.set_yscale("log")
    right.set_title(f"speed-up over {name} at the same batch size", fontsize=9)
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        axis.set_xlabel("batch size")
        axis.grid(alpha=0.3)
    _plain_ticks(left)
    figure.legend(loc="outside right center", frameon=False)
    return figure


def module_figure(record: Record) -> Figure | None:
    """Time by module, a bar for each mode (papers/000 Table 15)."""
    runs = [run for run in record.at(min(record.batch_sizes)) if run.modules]
    if not runs:
        return None
    figure = Figure(figsize=(7.5, 0.45 * len(runs) + 1.3), layout="constrained")
    axis = figure.subplots()
    names = list(dict.fromkeys(module for run in runs for module in run.modules or {}))
    left = np.zeros(len(runs))
    labels = [run.mode for run in runs]
    for number, name in enumerate(names):
        widths = np.array([1e3 * (run.modules or {}).get(name, 0.0) / len(run.tokens) for run in runs])
        axis.barh(labels, widths, left=left, label=name, color=_COLOURS[number % len(_COLOURS)], height=0.7)
        left += widths
    for row, total in enumerate(left):
        axis.text(total, row, f" {total:.1f}", va="center")
    axis.set_xlim(right=1.1 * float(left.max()))
    axis.invert_yaxis()
    axis.set_xlabel(f"milliseconds a sentence, batch size {runs[0].batch_size}")
    figure.legend(loc="outside upper center", ncols=min(5, len(names)), frameon=False)
    return figure


def memory_figure(record: Record) -> Figure | None:
    """Peak memory, a bar for each mode (papers/000 Table 16)."""
    size = max(record.batch_sizes)
    runs = [run for run in record.at(size) if run.host_bytes]
    if not runs:
        return None
    kinds: list[tuple[str, Callable[[Run], int | None]]] = [("host", lambda run: run.host_bytes)]
    if any(run.device_bytes for run in runs):
        kinds.append(("device", lambda run: run.device_bytes))
    figure = Figure(figsize=(4.5 * len(kinds), 0.32 * len(runs) + 1.1), layout="constrained")
    for axis, (kind, value) in zip(figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds, strict=True):
        labels, heights = [run.mode for run in runs], [(value(run) or 0) / 1e6 for run in runs]
        bars = axis.barh(labels, heights, color=_COLOURS[0], height=0.7)
        axis.bar_label(bars, [f" {height:.0f}" if height else " not known" for height in heights])
        axis.set_xlim(right=1.2 * max(heights))
        axis.set_xlabel(f"peak {kind} memory, MB, batch size {size}")
    figure.axes[0].invert_yaxis()
    return figure


FIGURES: dict[str, Callable[[Record], Figure | None]] = {
    "speed_ups": speed_up_distribution,
    "edit_ratio": edit_ratio_figure,
    "batch_sizes": batch_size_figure,
    "modules": module_figure,
    "memory": memory_figure,
}
"""how a file's name ends, and the function that draws it; it returns None where the record lacks the numbers"""


def _speed_ups(run: Run, baseline: Run) -> np.ndarray:
    """Speed-up of each sentence over the baseline."""
    return np.array(baseline.sentence_latencies) / np.array(run.sentence_latencies)


def _axis_end(values: np.ndarray, least: float) -> float:
    """The end of an axis: at least `least`, and not so far that a few outliers squeeze the other points together."""
    return 1.05 * max(least, min(float(values.max()), 1.5 * float(np.percentile(values, 98))))


def _medians(x: np.ndarray, y: np.ndarray, groups: int = 8) -> tuple[list[float], list[float]]:
    """Means of x and medians of y in about equally large groups of neighbours in x; equal x are in one group."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, groups + 1)))
    group = np.searchsorted(edges[1:-1], x, side="right")
    chosen = [group == number for number in np.unique(group)]
    return [float(x[rows].mean()) for rows in chosen], [float(np.median(y[rows])) for rows in chosen]


def _plain_ticks(axis: Axes) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times powers of ten; matplotlib's default labels powers of ten only."""
    axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
