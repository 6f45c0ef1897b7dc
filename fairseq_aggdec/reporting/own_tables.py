"""Everything that an experiment has come to, whether or not a paper has a counterpart of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairseq_aggdec.benchmarking.machine import describe
from fairseq_aggdec.benchmarking.tables import BASELINES
from fairseq_aggdec.grid import Grid, Group
from fairseq_aggdec.reporting.beside import DASH
from fairseq_aggdec.reporting.measures import mean_accepted_tokens, mean_iterations
from fairseq_aggdec.reporting.results import Decoding, Measured, Measurement, Results

_COUNTERS = {"iterations": mean_iterations, "tokens an iteration": mean_accepted_tokens}


def own_grids(results: Results) -> list[Grid]:
    """Scores by test set, then times by file of aggdec-bench and batch size."""
    grids = [_scores(results, table) for table in results.scores]
    for measurement in results.measurements:
        for size in sorted({run.batch_size for run in measurement.runs}):
            grids.append(_times(measurement, [run for run in measurement.runs if run.batch_size == size]))
    return grids


def _scores(results: Results, table: dict[str, Any]) -> Grid:
    """A row each decoding; iterations and tokens where counters were kept."""
    columns = list(dict.fromkeys(column for row in table["rows"] for column in row["scores"]))
    counted = {entry.label: entry for entry in results.decodings if entry.subset == table["subset"]}
    rows = tuple(
        (row["name"], *map(_number, map(row["scores"].get, columns)), *_counters(counted.get(row["name"])))
        for row in table["rows"]
    )
    title = f"Scores: {table['test_set']} ({table['sentences']} inputs)"
    return Grid(f"{table['subset']}-scores", title, "decoding", _plain([*columns, *_COUNTERS]), rows)


def _times(measurement: Measurement, runs: Sequence[Measured]) -> Grid:
    """A row each mode; speed-ups over the usual baselines, those that were timed."""
    baselines = [next((run for run in runs if run.mode == mode), None) for mode in BASELINES]
    timed = [run for run in baselines if run is not None]
    columns = ["seconds", *(f"over {run.mode}" for run in timed), *_COUNTERS, "identical to greedy"]
    rows = tuple((run.mode, *_cells(run, timed)) for run in runs)
    size = runs[0].batch_size
    title = f"Times: {measurement.name} ({runs[0].sentences} inputs, {size} at a time)"
    label = f"{measurement.name}-{size}-times".replace("/", "-").replace("_", "-")
    return Grid(label, title, "mode", _plain(columns), rows, (f"{describe(measurement.machine)}.",))


def _cells(run: Measured, baselines: Sequence[Measured]) -> Iterator[str]:
    yield f"{run.seconds:.2f} ({min(run.rounds):.2f} to {max(run.rounds):.2f})"
    for baseline in baselines:
        yield f"{baseline.seconds / run.seconds:.2f}x"
    yield from _counters(run)
    yield run.identical or DASH


def _counters(found: Decoding | Measured | None) -> list[str]:
    return [_number(None if found is None else mean(found)) for mean in _COUNTERS.values()]


def _plain(columns: Sequence[str]) -> tuple[Group, ...]:
    return tuple(Group(column, ("",)) for column in columns)


def _number(number: float | None) -> str:
    return DASH if number is None else f"{number:.2f}"
