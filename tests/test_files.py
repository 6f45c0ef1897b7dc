"""Files that are complete or not there."""

import errno
import multiprocessing
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.files import (
    check_result_file,
    folder_written_whole,
    read_text_lines,
    written_whole,
)
from tests.support.helpers import refused_with


def test_a_file_appears_when_it_is_complete_and_an_error_leaves_the_old_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new folder" / "file"
    with written_whole(path) as partial:
        partial.write_text("all of it")
        # on the same file system, so that renaming is one step
        assert partial.parent == path.parent
        assert not path.exists()
    with suppress(KeyError), written_whole(path) as partial:
        partial.write_text("half")
        raise KeyError
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_appears_when_it_is_complete_and_holds_nothing_of_a_killed_run(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "new" / "folder"
    (tmp_path / "new/folder.partial/part").mkdir(parents=True)
    (tmp_path / "new/folder.partial/part/file").touch()
    (tmp_path / "new/folder.partial/file").touch()
    with folder_written_whole(folder) as partial:
        (partial / "whole").touch()
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["whole"]
    with (  # noqa: PT012
        pytest.raises(KeyError),
        folder_written_whole(tmp_path / "new/another") as partial,
    ):
        (partial / "half").touch()
        raise KeyError
    assert list(folder.parent.iterdir()) == [folder]


def hold(path: Path, is_held: Any, release: Any) -> None:
    with written_whole(path) as partial:
        partial.write_text("of the first")
        is_held.set()
        release.wait(60)


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    """The second is refused, and leaves alone what the first writes."""
    context = multiprocessing.get_context("fork")
    is_held = context.Event()
    release = context.Event()
    first = context.Process(target=hold, args=(tmp_path / "file", is_held, release))
    first.start()
    assert is_held.wait(60)
    with refused_with(r"file.partial: another process is at work on it"):
        written_whole(tmp_path / "file").__enter__()
    release.set()
    first.join()
    assert (tmp_path / "file").read_text() == "of the first"
    with written_whole(tmp_path / "file") as partial:
        partial.write_text("of the second")
    assert (tmp_path / "file").read_text() == "of the second"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_full_disk_is_said_of_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"No space left on device: .*file") as error,
        written_whole(tmp_path / "file"),
    ):
        # that of a write names no file
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert error.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """`str.splitlines` has more line ends."""
    for data, lines in (
        (b"", []),
        (b"\n", [""]),
        ("a\u2028b\x0cc\n\nb".encode(), ["a\u2028b\x0cc", "", "b"]),
    ):
        (tmp_path / "file").write_bytes(data)
        assert read_text_lines(tmp_path / "file") == lines


def test_a_result_replaces_an_earlier_one_and_no_other_kind_of_file(
    tmp_path: Path,
) -> None:
    """Such as a dictionary or a model, whose name was given by mistake."""
    path = tmp_path / "new folder" / "out.json"
    check_result_file(path, "{[")
    assert path.parent.is_dir()
    assert not path.exists()
    for old in (b"", b"{}"):
        path.write_bytes(old)
        check_result_file(path, "{[")
    for other in (b"the 12\n", b"PK\x03\x04", "\u00e4".encode()):
        path.write_bytes(other)
        with refused_with(r"out\.json: exists and is another kind of file"):
            check_result_file(path, "{[")
    with refused_with(r"is a folder; name a file"):
        check_result_file(tmp_path, "{[")
    with pytest.raises(OSError, match=r"out\.json"):
        check_result_file(path / "out.json", "{[")
