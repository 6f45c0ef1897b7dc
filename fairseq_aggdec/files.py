"""Reading text in UTF-8, gzipped or not, and writing files that have their name only when they are complete."""

import errno
import fcntl
import gzip
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fairseq_aggdec.errors import AggdecError

PARTIAL = ".partial"
"""the end of an unfinished file's name"""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, and rename it to `path` when the block ends without an error.

    `path` is complete at any time, and an old file stays until then. The folder is made if it does not exist.

    Raises:
        AggdecError: another process is writing the file.
        OSError: a file cannot be written; `path` is named where the error names none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    partial.touch()
    with alone_at(partial):
        try:
            yield partial
            partial.replace(path)
        except BaseException as error:
            partial.unlink(missing_ok=True)
            # the disk is full, for example
            if isinstance(error, OSError) and error.errno and error.filename is None:
                error.filename = str(path)
            raise


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside `folder`, which gets the name of `folder` when the block ends without an error.

    An error leaves nothing of it; what a killed run leaves is deleted by the next one.

    Raises:
        AggdecError: another process is writing the folder.
        OSError: it cannot be made, or `folder` has files.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    partial.mkdir(parents=True, exist_ok=True)
    with alone_at(partial):
        for left in partial.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        try:
            yield partial
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial)
            raise


def refuse_overwriting(output: Path, read: Iterable[Path]) -> None:
    """Raise `AggdecError` where a file to write is one of those that are read for it."""
    if output.exists() and any(
        path.exists() and output.samefile(path) for path in read
    ):
        raise AggdecError(
            f"{output}: is read for this, and would be overwritten; name another file"
        )


def check_result_file(path: Path, begins: str) -> None:
    """Make sure, before long work, that its result can be written; the folder is made if it does not exist.

    A file may be replaced only by one of its kind, so that a mistyped option costs no model and no dictionary.

    Args:
        path: the file that will be written.
        begins: the characters with one of which such a file begins, `{[` for JSON.

    Raises:
        AggdecError: it is a folder, or a file that begins otherwise.
        OSError: it cannot be written.
    """
    if path.is_dir():
        raise AggdecError(f"{path}: is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if path.is_file():
        with path.open("rb") as file:
            if file.read(1) not in {b"", *(character.encode() for character in begins)}:
                raise AggdecError(
                    f"{path}: exists and is another kind of file, which would be lost; name another one"
                )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Makes a lock file, and other processes that want it wait until the block ends. Raises `OSError`."""
    with path.open("ab") as file:
        with suppress(OSError):  # a network file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Locks a file or folder until the block ends, and beyond while a child process of this one goes on.

    Raises:
        AggdecError: another process has locked it.
        OSError: there is no such file or folder.
    """
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.set_inheritable(descriptor, True)
        taken = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = True
        except OSError:
            pass  # a network file system without locks
        # another process may just have finished it
        if (
            taken
            or not path.exists()
            or not os.path.samestat(os.fstat(descriptor), path.stat())
        ):
            raise AggdecError(
                f"{path}: another process is at work on it; wait until it has ended"
            )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def open_lines(path: Path) -> Iterator[tuple[Iterator[bytes], IO[bytes]]]:
    """Open a file, gzipped or not: its lines, and the stored file, whose position shows the progress.

    Raises:
        AggdecError: when lines are read: the file is damaged.
        OSError: the file cannot be opened.
    """
    with path.open("rb") as raw:
        zipped = raw.peek(2)[:2] == b"\x1f\x8b"
        yield _named(gzip.GzipFile(fileobj=raw) if zipped else raw, path), raw


def _named(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    try:
        yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise AggdecError(
            f"{path}: damaged or cannot be read ({error}); copy it again"
        ) from error


def decode_text(data: bytes, name: str, first_line: int = 1) -> str:
    """The text of UTF-8 bytes, one or more lines from `first_line` on of a source that is called `name`.

    Raises:
        AggdecError: they are not UTF-8; the message names the line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise AggdecError(
            f"{name}, line {line}: not valid UTF-8 (byte {column} of the line); convert it, for example with iconv"
        ) from None


def read_text(source: str | Path) -> str:
    """The text of a UTF-8 file; `-` is the standard input.

    Raises:
        AggdecError: it is not UTF-8, or cannot be read.
    """
    name = "standard input" if source == "-" else str(source)
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise AggdecError(f"{name}: cannot be read ({error.strerror})") from error
    return decode_text(data, name)


def read_text_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file; only a line feed ends a line.

    Raises:
        AggdecError: the file is not UTF-8.
        OSError: the file cannot be read.
    """
    lines = decode_text(path.read_bytes(), str(path)).split("\n")
    return lines if lines[-1] else lines[:-1]


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprints(path: str) -> list[str]:
    """The SHA-256 of each checkpoint; `path` joins those of an ensemble by `:`.

    Raises:
        AggdecError: a file does not exist.
    """
    check_checkpoints(path)
    return [file_sha256(Path(name)) for name in path.split(":")]


def dictionary_file(folder: Path, side: str, language: str | None) -> Path:
    """fairseq's dictionary of a language; that of an imported model has the name of its side, or none."""
    paths = [
        folder / name
        for name in (f"dict.{language}.txt", f"dict.{side}.txt", "dict.txt")
    ]
    return next((path for path in paths if path.is_file()), paths[0])


def check_checkpoints(*paths: str | None) -> None:
    """Raise `AggdecError` where a checkpoint does not exist; a path joins those of an ensemble by `:`, None is none."""
    for name in [
        name for path in paths if path is not None for name in path.split(":")
    ]:
        if not Path(name).is_file():
            what = (
                "a folder; name a file in it"
                if name and Path(name).is_dir()
                else "no such file; check the path"
            )
            raise AggdecError(
                f"checkpoint {name or 'without a name in ' + ', '.join(map(str, paths))}: {what}"
            )
