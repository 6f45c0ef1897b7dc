"""Tests of `fairseq_aggdec.lab.benchmarking.figures`."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.lab.benchmarking.figures import FIGURES, draw
from fairseq_aggdec.lab.benchmarking.record import Record
from tests.lab.benchmarking.tiny import made_up_record, made_up_run

MODES = {"beam5": 1.0, "beam1": 0.7, "greedy": 0.3, "iad": 0.08, "gad++:5:3": 0.2, "ctranslate2:greedy@int8": 0.15}


def full_record(sentences: int = 8) -> Record:
    rng = np.random.default_rng(1)
    runs = []
    for size in (1, 8, 32):
        for mode, seconds in MODES.items():
            run = made_up_run(mode, seconds * size**0.4, size, sentences, host_bytes=int(1e9 * (1 + seconds)))
            run.latencies = [[time * rng.uniform(0.5, 2) for time in times] for times in run.latencies]
            if run.implementation == "fairseq_aggdec":
                run.modules = {"verifier's encoder": seconds, "verifier's decoder": 9 * seconds, "rest": seconds}
            runs.append(run)
    return made_up_record(runs)


def test_all_figures_as_png_and_svg(tmp_path: Path) -> None:
    paths = draw(full_record(), tmp_path / "figures", "cpu")
    assert sorted(path.name for path in paths) == sorted(
        f"cpu_{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")
    )
    for path in paths:
        start = path.read_bytes()[:200]
        assert start.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in start


def test_numbers_in_the_figures_are_those_of_the_record() -> None:
    record = full_record()
    figure = FIGURES["speed_ups"](record)
    assert figure is not None
    beam, iad = record.runs[0], record.runs[3]
    speed_up = np.median(np.array(beam.sentence_latencies) / np.array(iad.sentence_latencies))
    assert f"iad: median {speed_up:.1f}x" in [axis.get_title() for axis in figure.axes]
    batches = FIGURES["batch_sizes"](record)
    assert batches is not None
    left, right = batches.axes
    largest = next(run for run in record.at(max(record.batch_sizes)) if run.mode == "beam5")
    for line, mode in zip(left.lines, MODES, strict=True):
        runs = [run for run in record.runs if run.mode == mode]
        assert np.asarray(line.get_ydata()).tolist() == pytest.approx([largest.seconds / run.seconds for run in runs])
    assert np.asarray(right.lines[0].get_ydata()).tolist() == [1, 1, 1]
