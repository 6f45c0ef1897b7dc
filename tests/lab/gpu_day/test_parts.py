"""The commands of a GPU day have options that there are, at full size and rehearsed; what they measure is reported."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli import bench
from fairseq_aggdec.lab.benchmarking.modes import parse_modes
from fairseq_aggdec.lab.gpu_day import page
from fairseq_aggdec.lab.gpu_day.parts import Day

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("rehearse", [True, False])
def test_every_benchmark_has_options_that_there_are(rehearse: bool) -> None:
    parts = Day(ROOT, ROOT / "work", ROOT / "data", rehearse).parts()
    commands = [step.command for part in parts for step in part.steps if "fairseq_aggdec.cli.bench" in step.command]
    assert commands
    for command in commands:
        args = bench._parser().parse_args(command[3:])  # behind python -m MODULE
        assert args.device == ("cpu" if rehearse else "cuda")
        assert parse_modes(args.modes, args.peers)


def test_a_benchmark_is_reported_as_tables() -> None:
    stored = ROOT / "docs/benchmarks/shipped_mt_tatoeba_cpu.json"
    result = json.loads(stored.read_text(encoding="utf-8"))
    step = {"name": "decode", "command": "aggdec bench", "state": "done", "seconds": 3.0, "output": []}
    measured = {key: result[key] for key in ("machine", "commit", "date")} | {"result": result}
    text = page.markdown([{"part": "train", "title": "Training", "steps": [step | measured]}])
    for words in (result["machine"]["processor"], "## Training", "Batch size 1:", "| gad "):
        assert words in text
