"""The table of heads from measurements."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.blockwise_table import main
from fairseq_aggdec.errors import AggdecError
from tests.benchmarking.heads_records import heads_record, heads_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for column, size, iterations, seconds in (
        ("regular", 2, [5, 9], 3.0),
        ("both", 2, [4, 7], 2.0),
        ("both", 4, [3, 5], 1.0),
    ):
        runs = [
            heads_run("greedy", 4.0, [7, 13], [7, 13], 25.5),
            heads_run("blockwise", seconds, [7, 13], iterations, 25.5),
            heads_run("blockwise:2", seconds, [7, 13], [3, 5], 24.0),
        ]
        heads_record(*runs).save(tmp_path / f"{column}-{size}.json")
    return tmp_path


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


def test_the_first_row_is_the_base_model_where_that_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Head 1 of a model with heads may have been trained anew."""
    heads_record(heads_run("greedy", 4.0, [7, 13], [7, 13], 26.25)).save(folder / "regular-1.json")
    main([str(folder)])
    rows = [line.replace(" ", "") for line in capsys.readouterr().out.splitlines() if line[:1] == "|"]
    assert rows[2:4] == ["|1|26.25/1.00||||", "|2|25.50/1.50|||25.50/2.00|"]
    assert sum(row.startswith("|1|") for row in rows) == 1


@pytest.mark.parametrize(
    ("name", "message"), [("nothing", "holds no regular-2.json"), ("regular-2", "--modes greedy,blockwise")]
)
def test_refused(tmp_path: Path, name: str, message: str) -> None:
    heads_record(heads_run("greedy", 4.0, [7, 13], [7, 13])).save(tmp_path / f"{name}.json")
    with pytest.raises(AggdecError, match=message):
        main([str(tmp_path)])
