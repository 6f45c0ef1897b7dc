"""Reading the input of fairseq-interactive."""

import io
import sys
from pathlib import Path

import pytest

from fairseq_aggdec.compat.interactive_input import buffered_read
from fairseq_aggdec.errors import AggdecError

TEXT = "ein Satz\n\n   \n  ümlaut \r\nlast"


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_lines_come_in_buffers(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = given(TEXT.encode(), source, tmp_path, monkeypatch)
    assert list(buffered_read(path, 2)) == [["ein Satz", ""], ["", "ümlaut"], ["last"]]


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_invalid_bytes_are_named_after_the_lines_before_them(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = given(b"one\ntwo\nthr\xff\xfe\nfour\n", source, tmp_path, monkeypatch)
    lines = buffered_read(path, 10)
    assert next(lines) == ["one", "two"]
    name = path if source == "file" else "the standard input"
    with pytest.raises(AggdecError, match=f"{name}, line 3: not valid UTF-8 .byte 0xff at character 4"):
        next(lines)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"--input .*nothing.txt: cannot be read .No such file"):
        next(buffered_read(str(tmp_path / "nothing.txt"), 1))


def given(data: bytes, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put `data` where `source` says; returns what --input names it."""
    if source == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
        return "-"
    (tmp_path / "input.txt").write_bytes(data)
    return str(tmp_path / "input.txt")
