"""Files that are complete or not there, and text whose faults are named."""

from __future__ import annotations

import errno
import gzip
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import (
    check_result_file,
    decode_text,
    folder_written_whole,
    open_lines,
    read_text_lines,
    written_whole,
)


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "file"
    with written_whole(path) as partial:
        partial.write_text("all of it")
        assert partial.parent == path.parent  # on the same file system, so that renaming is one step
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with written_whole(path) as partial:
            partial.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_when_it_is_complete_and_holds_nothing_of_a_killed_run(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    (tmp_path / "new/folder.partial/part").mkdir(parents=True)
    (tmp_path / "new/folder.partial/part/file").touch()
    (tmp_path / "new/folder.partial/file").touch()
    with folder_written_whole(folder) as partial:
        (partial / "whole").touch()
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["whole"]
    assert list(folder.parent.iterdir()) == [folder]


def hold(path: Path, is_held: Any, release: Any) -> None:
    with written_whole(path) as partial:
        partial.write_text("of the first")
        is_held.set()
        release.wait(60)


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    """The second is refused, and leaves alone what the first writes."""
    context = multiprocessing.get_context("fork")
    is_held, release = context.Event(), context.Event()
    first = context.Process(target=hold, args=(tmp_path / "file", is_held, release))
    first.start()
    assert is_held.wait(60)
    with pytest.raises(AggdecError, match=r"file.partial: another process is at work on it"):
        written_whole(tmp_path / "file").__enter__()
    release.set()
    first.join()
    assert (tmp_path / "file").read_text() == "of the first"
    with written_whole(tmp_path / "file") as partial:
        partial.write_text("of the second")
    assert (tmp_path / "file").read_text() == "of the second"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_full_disk_is_said_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: .*file") as error, written_whole(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # that of a write names no file
    assert error.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_the_same_gzipped_or_not_whatever_the_name(tmp_path: Path) -> None:
    text = "eins\nzwei\r\n\u2028drei".encode()
    (tmp_path / "plain.gz").write_bytes(text)
    (tmp_path / "zipped").write_bytes(gzip.compress(text))
    for name in ("plain.gz", "zipped"):
        with open_lines(tmp_path / name) as (lines, raw):
            assert list(lines) == [b"eins\n", b"zwei\r\n", "\u2028drei".encode()]
            assert raw.tell() == (tmp_path / name).stat().st_size


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 500)
    (tmp_path / "short.gz").write_bytes(whole[:-20])
    (tmp_path / "wrong.gz").write_bytes(whole[:-8] + b"\0" * 8)
    for name in ("short.gz", "wrong.gz"):
        with pytest.raises(AggdecError, match=f"{name}: damaged"), open_lines(tmp_path / name) as (lines, _):
            list(lines)


@pytest.mark.parametrize(
    ("data", "first_line", "place"),
    [
        (b"caf\xe9", 1, "line 1: not valid UTF-8 (byte 4 of the line)"),
        (b"\n\nab\xff\n", 1, "line 3: not valid UTF-8 (byte 3 of the line)"),
    ],
)
def test_bytes_that_are_no_text_are_named(data: bytes, first_line: int, place: str) -> None:
    with pytest.raises(AggdecError) as caught:
        decode_text(data, "book.txt", first_line)
    assert str(caught.value).startswith(f"book.txt, {place}")


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\nb", ["a", "b"]),  # no line feed at the end
        ("a\u2028b\x0cc\n".encode(), ["a\u2028b\x0cc"]),  # str.splitlines would make three of it
    ],
)
def test_read_text_lines(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    (tmp_path / "file").write_bytes(data)
    assert read_text_lines(tmp_path / "file") == lines


@pytest.mark.parametrize("old", [None, b"", b"{}"])
def test_a_result_may_replace_an_earlier_one(old: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "out.json"
    if old is not None:
        path.parent.mkdir()
        path.write_bytes(old)
    check_result_file(path, "{[")
    assert path.parent.is_dir()
    assert path.exists() == (old is not None)


@pytest.mark.parametrize("other", [b"the 12\n", b"PK\x03\x04", "\u00e4".encode()])
def test_a_result_replaces_no_other_kind_of_file(other: bytes, tmp_path: Path) -> None:
    """Such as a dictionary or a model, whose name was given by mistake."""
    (tmp_path / "dict.de.txt").write_bytes(other)
    with pytest.raises(AggdecError, match=r"dict\.de\.txt: exists and is another kind of file"):
        check_result_file(tmp_path / "dict.de.txt", "{[")
    with pytest.raises(AggdecError, match=r"is a folder; name a file"):
        check_result_file(tmp_path, "{[")
    with pytest.raises(OSError, match=r"dict\.de\.txt"):
        check_result_file(tmp_path / "dict.de.txt/out.json", "{[")
