from pathlib import Path

import pytest

from fairseq_aggdec.data.text_files import read_lines, write_lines
from fairseq_aggdec.errors import AggdecError


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match="AGGDEC_DATA"):
        list(read_lines(tmp_path / "missing.gz"))


def test_read_column(tmp_path: Path) -> None:
    write_lines(tmp_path / "table", ["a\tb", "c\td"])
    assert list(read_lines(tmp_path / "table", 1)) == ["b", "d"]
    with pytest.raises(AggdecError, match="table, line 1: has no column 2"):
        list(read_lines(tmp_path / "table", 2))
