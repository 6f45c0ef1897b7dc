"""The table of an ablation, from logs and measurements made up for it."""

from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.benchmarking.record import Record, Run
from fairseq_aggdec.cli import ablation
from fairseq_aggdec.errors import AggdecError
from tests.evaluation.test_training_log import trained, validated

MACHINE = {"processor": "a processor", "threads": 2, "cores": 4, "versions": {"torch": "2"}}


def run_of(mode: str, seconds: float, **more: Any) -> Run:
    """Ten sentences of twelve tokens, one by one."""
    return Run(
        mode,
        "fairseq_aggdec",
        "fp32",
        1,
        [[i] for i in range(10)],
        [[seconds / 10] * 10],
        [12] * 10,
        ["f"] * 10,
        **more,
    )


def make_variant(folder: Path, lines: list[str], **modules: float) -> None:
    (folder / "train").mkdir(parents=True)
    (folder / "train/hydra_train.log").write_text("".join(lines))
    counters = {"iterations": [4] * 10, "accepted": [8] * 10}
    runs = [run_of("greedy", 1.3, iterations=[12] * 10), run_of("gad", 1.0, **counters, modules=modules)]
    Record("test", "aggdec bench", "now", None, MACHINE, [5] * 10, [0.0] * 10, runs).save(folder / "bench.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fast = [trained(100, 10), validated(100, 1.0), trained(200, 10), validated(200, 2.0)]
    slow = [trained(100, 30), validated(100, 1.5), trained(200, 30), validated(200, 1.25)]
    make_variant(tmp_path / "r1", fast, drafter=0.08)
    make_variant(tmp_path / "r4", slow, **{"drafter": 0.12, "drafter's encoder": 0.005})
    return tmp_path


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_groups_of_variants(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = folder / "table.md"
    ablation.main([str(folder), "--group", "R", "r1", "r4", "--group", "alone", "r4", "--output", str(output)])
    text = output.read_text()
    assert capsys.readouterr().out == text
    assert "10 sentences, batch size 1; a processor, 2 threads of 4 cores" in text
    first, second = text.split("**R**")[1].split("**alone**")
    rows = [cells(line) for line in first.splitlines() if line.startswith("| r")]
    # both reach 1.5: the first one halfway between its validations
    assert rows == [
        ["r1", "200", "20", "2.00", "15 (to 1.50)", "3.00", "2.00", "0.00", "1.30x"],
        ["r4", "200", "60", "1.50", "30 (to 1.50)", "3.00", "3.00", "0.50", "1.30x"],
    ]
    assert second.count("| r4") == 1


def test_what_is_missing_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_variant(folder / "unmeasured", [])
    with pytest.raises(
        AggdecError, match=r"unmeasured/bench\.json: run aggdec bench with --modes greedy,gad --profile"
    ):
        ablation.main([str(folder), "--group", "R", "r1", "unmeasured"])
    (folder / "r4/bench.json").unlink()
    with pytest.raises(AggdecError, match=r"r4/bench\.json: no such file; train and measure"):
        ablation.main([str(folder), "--group", "R", "r1", "r4"])
    with pytest.raises(SystemExit):
        ablation.main([str(folder), "--group", "only a title"])
    assert "--group only a title: name variants after the title" in capsys.readouterr().err
