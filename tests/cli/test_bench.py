"""Tests of `aggdec-bench`."""

import json
from pathlib import Path

from tests.helpers import ToyModel, run_cli


def test_bench_prints_and_writes_the_comparison(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    record = tmp_path / "bench.json"
    options = ["--limit", 4, "--rounds", 2, "--modes", "beam5,greedy,iad", "--threads", 1, "--json", record]
    done = run_cli("aggdec-bench", toy_model_dir.data, "--path", toy_model_dir.checkpoint, *options)
    assert "4 sentences of test, batch size 1, 2 rounds" in done.stdout
    assert "4 of 4" in done.stdout
    written = json.loads(record.read_text())
    assert [mode["mode"] for mode in written["modes"]] == ["beam5", "greedy", "iad"]
    assert all(len(mode["rounds"]) == 2 for mode in written["modes"])
    assert "torch" in written["machine"]


def test_bench_refuses_bad_options(toy_model_dir: ToyModel) -> None:
    missing = run_cli("aggdec-bench", toy_model_dir.data, "--path", "/nowhere/model.pt", check=False)
    assert missing.returncode == 1
    assert "/nowhere/model.pt" in missing.stderr
    assert "Traceback" not in missing.stderr
    rounds = run_cli("aggdec-bench", toy_model_dir.data, "--path", "x", "--rounds", 0, check=False)
    assert rounds.returncode == 2
    assert "--rounds 0: must be at least 1" in rounds.stderr
