"""The table of heads from measurements."""

from pathlib import Path

import pytest

from fairseq_aggdec.benchmarking.record import Record, Run
from fairseq_aggdec.cli.blockwise_table import main, mean_accepted_block
from fairseq_aggdec.errors import AggdecError


def run(mode: str, seconds: float, tokens: list[int], iterations: list[int], bleu: float | None) -> Run:
    batches = [[number] for number in range(len(tokens))]
    times = [[seconds / len(tokens)] * len(tokens)]
    outputs = [""] * len(tokens)
    return Run(mode, "fairseq_aggdec", "fp32", 1, batches, times, tokens, outputs, iterations, bleu=bleu)


def record(*runs: Run) -> Record:
    machine = {"processor": "a processor", "threads": 2, "cores": 4, "versions": {"torch": "2"}}
    return Record("title", "command", "2020-01-01", None, machine, [5, 5], [0.1, 0.2], list(runs))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for column, size, iterations, seconds in (
        ("regular", 2, [5, 9], 3.0),
        ("both", 2, [4, 7], 2.0),
        ("both", 4, [3, 5], 1.0),
    ):
        runs = [
            run("greedy", 4.0, [7, 13], [7, 13], 25.5),
            run("blockwise", seconds, [7, 13], iterations, 25.5),
            run("blockwise:2", seconds, [7, 13], [3, 5], 24.0),
        ]
        record(*runs).save(tmp_path / f"{column}-{size}.json")
    return tmp_path


def test_mean_accepted_block() -> None:
    """Outputs of 7 and 13 tokens: after the first pass of each, 18 tokens in 2 + 4 verifying passes."""
    assert mean_accepted_block(run("blockwise", 1.0, [7, 13], [3, 5], None)) == 3
    assert mean_accepted_block(run("greedy", 1.0, [7, 13], [7, 13], None)) == 1


def test_tables_and_figure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(folder), "--output", str(folder / "table.md"), "--figure", str(folder / "speed.png")])
    printed = capsys.readouterr().out
    assert (folder / "table.md").read_text(encoding="utf-8") == printed
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line[:1] == "|"]
    assert rows[0] == ["k", "regular", "distilled", "fine-tuned", "both"]
    assert rows[2] == ["1", "25.50 / 1.00", "", "", ""]
    assert rows[3] == ["2", "25.50 / 1.50", "", "", "25.50 / 2.00"]
    assert rows[4] == ["4", "", "", "", "25.50 / 3.00"]
    assert rows[5] == ["2, top-2", "24.00 / 3.00", "", "", "24.00 / 3.00"]
    assert rows[-1] == ["4", "", "", "", "4.00x (3.00)"]
    assert (folder / "speed.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("name", "message"), [("nothing", "holds no regular-2.json"), ("regular-2", "--modes greedy,blockwise")]
)
def test_refused(tmp_path: Path, name: str, message: str) -> None:
    record(run("greedy", 4.0, [7, 13], [7, 13], None)).save(tmp_path / f"{name}.json")
    with pytest.raises(AggdecError, match=message):
        main([str(tmp_path)])
