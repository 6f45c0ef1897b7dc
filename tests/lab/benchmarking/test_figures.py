"""Figures of a record."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.lab.benchmarking.figures import FIGURES, draw
from tests.lab.benchmarking.tiny import made_up_record, made_up_run

MODES = {"beam5": 1.0, "beam1": 0.7, "greedy": 0.3, "iad": 0.08, "ctranslate2:greedy@int8": 0.15}


def test_figures_show_the_numbers_of_the_record_as_png_and_svg(tmp_path: Path) -> None:
    record = made_up_record(
        [
            made_up_run(mode, seconds * size**0.4, size, speed_up_by_edit_ratio=[[0.1, 3.0]] if mode == "iad" else None)
            for size in (1, 8, 32)
            for mode, seconds in MODES.items()
        ]
    )
    paths = draw(record, tmp_path / "figures", "cpu")
    assert sorted(path.name for path in paths) == sorted(
        f"cpu_{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")
    )
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
    batches = FIGURES["batch_sizes"](record)
    assert batches is not None
    left, right = batches.axes
    largest = record.at(32)[0]
    for line, mode in zip(left.lines, MODES, strict=True):
        runs = [run for run in record.runs if run.mode == mode]
        assert np.asarray(line.get_ydata()).tolist() == pytest.approx([largest.seconds / run.seconds for run in runs])
    assert np.asarray(right.lines[0].get_ydata()).tolist() == [1, 1, 1]
