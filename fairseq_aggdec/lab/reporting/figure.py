"""Draws a table with two numbers in each cell: points of one kind for each column, one point for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairseq_aggdec.lab.benchmarking.figures import save
from fairseq_aggdec.lab.reporting.tables import Own

_SIDES = ((1, 1), (1, 0), (1, -1), (-1, 1), (-1, 0), (-1, -1), (0, 1), (0, -1))
"""where the name of a point may stand, across and up, the best place first"""


def draw(table: Own, path: Path) -> None:
    """Draw a table with `figure`, with the numbers y and x in each cell, to a `.png` or `.svg` file."""
    assert table.figure is not None
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel=table.figure[1], ylabel=table.figure[0])
    names: dict[tuple[float, float, str], list[str]] = {}
    for number, (column, marker) in enumerate(zip(table.columns, cycle("os^D"), strict=False)):
        colour, points = f"C{number}", []
        for row, cells in table.rows.items():
            y, x = cells[column].numbers if column in cells else (None, None)
            if x is not None and y is not None:
                points.append((x, y))
                names.setdefault((x, y, colour), []).append(f"{table.first}={row}" if row[0].isdigit() else row)
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, color=colour, marker=marker, markersize=5, linestyle="none", label=column)
    axes.margins(0.12)  # room for the names
    if len(table.columns) > 1:
        axes.legend(frameon=False)
    _name_points(figure, axes, names)
    save(figure, path)


def _name_points(figure: Figure, axes: Axes, names: Mapping[tuple[float, float, str], Sequence[str]]) -> None:
    """Write the names of points beside them where they cover neither points nor one another, or else nowhere.

    Args:
        figure: the figure; its layout stays as it is from now on.
        axes: what the points are drawn in, with its legend.
        names: by place and colour of a point, the names of all points that are there.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # the layout is known from now on
    figure.set_layout_engine("none")
    renderer = canvas.get_renderer()
    shown = [axes.transData.transform((x, y)) for x, y, _ in names]
    legend = axes.get_legend()
    taken = [legend.get_window_extent(renderer)] if legend else []
    for (x, y, colour), several in names.items():
        for across, up in _SIDES:
            text = axes.annotate(
                "\n".join(several),
                (x, y),
                textcoords="offset points",
                xytext=(5 * across, 5 * up),
                ha={-1: "right", 0: "center", 1: "left"}[across],
                va={-1: "top", 0: "center", 1: "bottom"}[up],
                fontsize=6,
                color=colour,
            )
            box = text.get_window_extent(renderer)
            if not box.count_overlaps(taken) and not any(box.contains(*point) for point in shown):
                taken.append(box)
                break
            text.remove()
