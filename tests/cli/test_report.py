"""Tests of `aggdec report`."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from tests.lab.bench.tiny import made_up_record, made_up_run


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    iad = made_up_run(
        "iad",
        0.06,
        iterations=10,
        speed_up_by_edit_ratio=[[0.1, 3.0]],
        speed_ups=[0, 4],
    )
    runs = [
        made_up_run("beam5", 0.4),
        made_up_run("greedy", 0.2),
        iad,
        made_up_run("beam5", 0.8, batch_size=8),
    ]
    made_up_record(runs).save(path)
    return path


def test_tables_of_stored_records(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(stored.read_bytes())
    aggdec(["report", str(stored), str(other)])
    text = capsys.readouterr().out
    assert text.index("## small") < text.index("## other")
    assert "commit 0123456789ab, 2030-01-01T00:00:00+00:00" in text
    (row, *_) = [line for line in text.splitlines() if line.startswith("| iad")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["0.0600 (0.0300-0.1200)", "6.67x", "3.33x"]
    assert "4.40" in cells  # 44 tokens in 10 iterations

    aggdec(["report", str(stored), "--figures", str(tmp_path / "figures")])
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    figures = ("batch_sizes", "edit_ratio", "sentences")
    assert names == [
        f"small_{name}.{suffix}" for name in figures for suffix in ("png", "svg")
    ]
    printed = capsys.readouterr().out
    assert all(str(tmp_path / "figures" / name) in printed for name in names)
