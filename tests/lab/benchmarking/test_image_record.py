"""What is kept of decoded images."""

from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.image_record import APPROXIMATE, EXACT, ImageRecord
from fairseq_aggdec.lab.benchmarking.record import load_record
from tests.lab.benchmarking.heads_records import save_image_record


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = save_image_record(tmp_path, 7, 4)
    assert ImageRecord.load(tmp_path) == made
    assert load_record(tmp_path / "record.json") == made.record  # what aggdec report reads
    assert made.quality[APPROXIMATE].psnr == pytest.approx(15)
    assert made.quality[APPROXIMATE].identical_share == 0.625
    blocks = {run.mode: run.mean_accepted_block for run in made.record.runs}
    assert (blocks[EXACT], blocks[APPROXIMATE]) == (2, 4)


def test_table(tmp_path: Path) -> None:
    rows = save_image_record(tmp_path, 7, 4).table().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells[0][:3] == ["decoding", "iterations", "mean accepted block"]
    assert cells[2] == ["bicubic", "", "", "", "", "10.00", ""]
    assert cells[3] == ["greedy", "13.0", "1.00", "2000", "1.00x", "20.00", "100.0%"]
    assert cells[4] == ["blockwise, exact", "7.0", "2.00", "1000", "2.00x", "20.00", "100.0%"]
    assert cells[5] == ["blockwise, ε = 2", "4.0", "4.00", "500", "4.00x", "15.00", "62.5%"]


def test_damaged(tmp_path: Path) -> None:
    save_image_record(tmp_path, 7, 4)
    (tmp_path / "quality.json").write_text('{"quality": {}}')
    with pytest.raises(AggdecError, match=r"quality\.json: .*; run aggdec super-resolve again"):
        ImageRecord.load(tmp_path)
