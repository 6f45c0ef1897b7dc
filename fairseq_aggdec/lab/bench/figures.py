"""Draws figures of a record as PNG and SVG, after those of Ge et al. 2022 (papers/000)."""

from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.bench.record import BASELINES, SPEED_UP_STEP, Record

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_COLOURS = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
MARKERS = "osD^vP*X<>"


def draw(record: Record, folder: Path, stem: str) -> list[Path]:
    """Draw all figures that a record has measurements for, into files whose names begin with `stem`; their paths."""
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
    """Write a figure to a `.png` or `.svg` file; the same figure gives the same bytes every time.

    `tight`: cut off empty margins.
    """
    kind = path.suffix.removeprefix(".")
    undated = {"Date": None} if kind == "svg" else None
    with (
        matplotlib.rc_context({"svg.hashsalt": "aggdec"}),
        written_whole(path) as partial,
    ):
        figure.savefig(
            partial,
            format=kind,
            dpi=150,
            bbox_inches="tight" if tight else None,
            metadata=undated,
        )


def edit_ratio_figure(record: Record) -> Figure | None:
    """Speed-up over `greedy` of groups of sentences against edit ratio, for modes that copy (papers/000 Figure 5)."""
    groups = {
        run.mode: points
        for run in record.at(min(record.batch_sizes))
        if (points := run.times.speed_up_by_edit_ratio)
    }
    if not groups:
        return None
    figure, axis = _figure("edit ratio", "speed-up over greedy, median")
    looks = zip(cycle(_COLOURS), cycle(MARKERS), strict=False)
    for (mode, points), (colour, marker) in zip(groups.items(), looks, strict=False):
        axis.plot(*zip(*points, strict=True), color=colour, marker=marker, label=mode)
    axis.axhline(1.0, color="grey", linewidth=0.8)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    return figure


def sentences_figure(record: Record) -> Figure | None:
    """The distribution of single sentences' speed-ups (papers/000 Figure 8)."""
    counts = {run.mode: found for run in record.runs if (found := run.times.speed_ups)}
    if not counts:
        return None
    baseline = next(
        name for name in BASELINES if any(run.mode == name for run in record.at(1))
    )
    figure, axis = _figure(
        f"speed-up over {baseline}, one sentence at a time", "sentences"
    )
    for (mode, found), colour in zip(counts.items(), cycle(_COLOURS), strict=False):
        edges = [SPEED_UP_STEP * edge for edge in range(len(found) + 1)]
        axis.stairs(found, edges, color=colour, label=mode)
    axis.legend(frameon=False)
    return figure


def _figure(x: str, y: str) -> tuple[Figure, Any]:
    """An empty figure and its axes, with their titles."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    return figure, figure.add_subplot(xlabel=x, ylabel=y)


def batch_size_figure(record: Record) -> Figure | None:
    """Speed-ups against batch size.

    They are over beam search at the largest size (papers/000 Figures 6 and 7), and at the same size.
    """
    sizes = record.batch_sizes
    modes = list(dict.fromkeys(run.mode for run in record.runs))
    # the baseline is decoded at every size
    counts = Counter(run.mode for run in record.runs)
    whole = [name for name in (*BASELINES, *modes) if counts[name] == len(sizes)]
    if len(sizes) < 2 or not whole:
        return None
    name = whole[0]
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    baseline = {run.batch_size: run for run in record.runs if run.mode == name}
    largest = baseline[max(sizes)]
    # more modes than colours: dashed
    lines = ["-"] * len(_COLOURS) + ["--"] * len(modes)
    looks = zip(cycle(_COLOURS), cycle(MARKERS), lines, strict=False)
    for mode, (colour, marker, line) in zip(modes, looks, strict=False):
        runs = sorted(
            (run for run in record.runs if run.mode == mode),
            key=lambda run: run.batch_size,
        )
        at = [run.batch_size for run in runs]
        for axis, speed_ups in (
            (left, [run.speed_up_over(largest) for run in runs]),
            (right, [run.speed_up_over(baseline[run.batch_size]) for run in runs]),
        ):
            axis.plot(
                at,
                speed_ups,
                color=colour,
                marker=marker,
                linestyle=line,
                markersize=4,
                label=mode if axis is left else None,
            )
    # axes
    left.set_title(
        f"speed-up over {name}, batch size {max(sizes)} ({largest.milliseconds:.3g} ms a sentence)",
        fontsize=9,
    )
    left.set_yscale("log")
    right.set_title(f"speed-up over {name} at the same batch size", fontsize=9)
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        axis.set_xlabel("batch size")
        axis.grid(alpha=0.3)
    # matplotlib's default labels powers of ten only
    left.yaxis.set_major_locator(
        matplotlib.ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0))
    )
    left.yaxis.set_major_formatter(
        matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}")
    )
    figure.legend(loc="outside right center", frameon=False)
    return figure


FIGURES: dict[str, Callable[[Record], Figure | None]] = {
    "edit_ratio": edit_ratio_figure,
    "sentences": sentences_figure,
    "batch_sizes": batch_size_figure,
}
"""how a file's name ends, and the function that draws it; it returns None where the record lacks the measurements"""
