"""Tables without a counterpart in a paper: those that an experiment declares, and those of all its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.lab.benchmarking.machine import describe
from fairseq_aggdec.lab.benchmarking.tables import speed_table
from fairseq_aggdec.lab.grid import DASH, Grid, Group
from fairseq_aggdec.lab.reporting.counterparts import Cell, OwnTable, Source
from fairseq_aggdec.lab.reporting.measures import MEASURES, run_of, value
from fairseq_aggdec.lab.reporting.results import Decoding, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDES = ((1, 1), (1, 0), (1, -1), (-1, 1), (-1, 0), (-1, -1), (0, 1), (0, -1))
"""where the name of a point may stand, across and up, the best place first"""


def measured_sources(results: Results, tables: Sequence[OwnTable]) -> list[Source]:
    """The sources of all measured numbers in these tables."""
    found = [source for table in tables for cell in table.cells.values() for source in cell.sources]
    return [source for source in found if value(results, source) is not None]


def summary(results: Results, used: Sequence[Source]) -> str:
    """One line: how many sentences were scored and timed, and on which machines."""
    parts = []
    sets = {source.set for source in used if source.measure not in MEASURES}
    if scored := "/".join(str(table["sentences"]) for table in results.scores if table["subset"] in sets):
        parts.append(f"Scores of {scored} sentences")
    if runs := [run for run in (run_of(results, source) for source in used) if run is not None]:
        timed = "/".join(dict.fromkeys(str(len(run.tokens)) for run in runs))
        alike = "/".join(dict.fromkeys(str(run.batch_size) for run in runs))
        parts.append(f"times of the first {timed} of them" if scored else f"Times of {timed} inputs")
        parts[-1] += f", batch size {alike}"
        records = dict.fromkeys(source.record for source in used if source.record in results.records)
        parts += [" / ".join(dict.fromkeys(describe(results.records[name].machine) for name in records))]
    return "; ".join(parts)


def declared_grid(results: Results, table: OwnTable, name: str) -> Grid | None:
    """A declared table with the rows that have a measured number; None if there are none.

    Args:
        results: the experiment's results.
        table: the table as declared.
        name: name for LaTeX's label.
    """
    rows = []
    for row in dict.fromkeys(row for row, _ in table.cells):
        cells = [_cell(results, table.cells.get((row, column))) for column in table.columns]
        if any(cell != DASH for cell in cells):
            rows.append((row, *cells))
    return Grid(name, table.title, table.first, _ungrouped(table.columns), tuple(rows), numbers=False) if rows else None


def draw(results: Results, table: OwnTable, path: Path) -> None:
    """Draws a table whose cells have two numbers, y and x: a kind of points for each column, a point for each row.

    Args:
        results: the experiment's results.
        table: a table with `figure`.
        path: path of the file, which ends with `.png` or `.svg`.
    """
    from matplotlib.figure import Figure

    from fairseq_aggdec.lab.benchmarking.figures import save

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel=table.figure[1], ylabel=table.figure[0])
    names: dict[tuple[float, float, str], list[str]] = {}
    for number, (column, marker) in enumerate(zip(table.columns, cycle("os^D"), strict=False)):
        colour, points = f"C{number}", []
        for (row, of_column), cell in table.cells.items():
            y, x = (value(results, source) for source in cell.sources)
            if of_column == column and x is not None and y is not None:
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
    """Writes the names of points beside them, where they cover neither points nor one another, or else nowhere.

    Args:
        figure: the figure; its layout stays as it is from now on.
        axes: what the points are drawn in, with its legend.
        names: by place and colour of a point, the names of all points that are there.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

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


def grids_of_everything(results: Results) -> list[Grid]:
    """Tables of all scores, by test set, then of all times, by file of aggdec bench and batch size."""
    grids = [_scores(results, table) for table in results.scores]
    for name, record in results.records.items():
        for size in record.batch_sizes:
            headers, rows = speed_table(record.at(size), short=True)
            columns = [header.replace("\n", " ") for header in headers[1:]]
            title = f"Times: {name} ({len(record.source_tokens)} inputs, {size} at a time)"
            label = f"{name}-{size}-times".replace("/", "-").replace("_", "-")
            notes = (f"{describe(record.machine)}.",)
            cells = tuple(tuple(cell or DASH for cell in row) for row in rows)
            grids.append(Grid(label, title, headers[0], _ungrouped(columns), cells, notes))
    return grids


def _cell(results: Results, cell: Cell | None) -> str:
    numbers = [] if cell is None else [value(results, source) for source in cell.sources]
    if cell is None or all(number is None for number in numbers):
        return DASH
    return cell.form.format(*(_NotMeasured() if number is None else number for number in numbers))


class _NotMeasured:
    """A missing number of a cell, which prints as a dash in any format."""

    def __format__(self, form: str) -> str:
        return DASH


def _scores(results: Results, table: dict[str, Any]) -> Grid:
    """The scores of a test set, a row for each decoding, with iterations and tokens if they were counted."""
    columns = list(dict.fromkeys(column for row in table["rows"] for column in row["scores"]))
    counted = {entry.label: entry for entry in results.decodings if entry.subset == table["subset"]}
    rows = tuple(
        (row["name"], *map(_number, [*map(row["scores"].get, columns), *_counters(counted.get(row["name"]))]))
        for row in table["rows"]
    )
    title = f"Scores: {table['test_set']} ({table['sentences']} inputs)"
    headings = _ungrouped([*columns, "iterations", "tokens an iteration"])
    return Grid(f"{table['subset']}-scores", title, "decoding", headings, rows)


def _counters(found: Decoding | None) -> list[float | None]:
    return [None, None] if found is None else [found.mean_iterations, found.mean_accepted_tokens]


def _ungrouped(columns: Sequence[str]) -> tuple[Group, ...]:
    return tuple(Group(column, ("",)) for column in columns)


def _number(number: float | None) -> str:
    return DASH if number is None else f"{number:.2f}"
