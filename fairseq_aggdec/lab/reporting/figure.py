"""Draws a table with two numbers in each cell: points of one kind for each column, one point for each row."""

from itertools import cycle
from pathlib import Path

from matplotlib.figure import Figure

from fairseq_aggdec.lab.bench.figures import save
from fairseq_aggdec.lab.reporting.tables import Own


def draw(table: Own, path: Path) -> None:
    """Draw a table with `figure`, with the numbers y and x in each cell, to a `.png` or `.svg` file."""
    assert table.figure is not None
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel=table.figure[1], ylabel=table.figure[0])
    for number, (column, marker) in enumerate(zip(table.columns, cycle("os^D"), strict=False)):
        for row, cells in table.rows.items():
            y, x = cells[column].numbers if column in cells else (None, None)
            if x is not None and y is not None:
                axes.plot([x], [y], color=f"C{number}", marker=marker, markersize=5)
                axes.annotate(row, (x, y), textcoords="offset points", xytext=(5, 3), fontsize=6, color=f"C{number}")
        if len(table.columns) > 1:
            axes.plot([], [], color=f"C{number}", marker=marker, linestyle="none", label=column)
            axes.legend(frameon=False)
    axes.margins(0.12)  # room for the names
    save(figure, path)
