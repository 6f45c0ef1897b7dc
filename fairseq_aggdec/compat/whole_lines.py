"""Output that grows line by line and ends with a whole line, whatever ends the run."""

from __future__ import annotations

import functools
import io
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from fairseq_aggdec.compat.interactive_input import running_command
from fairseq_aggdec.errors import AggdecError


class WholeLines(io.BufferedIOBase):
    """Writes bytes to an open file, whole lines at once and in one system call.

    A kill can leave part of a line only if it strikes during that call. Where the disk is full or an interrupt comes in
    between, the part that was written of the last line is removed again. Bytes behind the last line feed wait for the
    next one, and are dropped when the file is closed.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        """
        Args:
            descriptor: the file; closing this object leaves it open.
            name: stands for the file in error messages.
        """
        self._descriptor = descriptor
        self.name = name
        self._is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)  # a pipe cannot be truncated
        self._begun = b""
        self.is_broken = False
        """Whether a write has failed."""

    def writable(self) -> bool:
        """True."""
        return True

    def fileno(self) -> int:
        """The file's descriptor."""
        return self._descriptor

    def write(self, data: Any) -> int:
        """Writes everything up to the last line feed.

        Raises:
            AggdecError: the file cannot be written; it then ends with a whole line.
        """
        lines, end, self._begun = (self._begun + bytes(data)).rpartition(b"\n")
        if end:
            self._write_through(lines + end)
        return len(data)

    def _write_through(self, lines: bytes) -> None:
        start = os.lseek(self._descriptor, 0, os.SEEK_END) if self._is_file else 0
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BaseException as error:
            if self._is_file:
                written = os.fstat(self._descriptor).st_size - start
                os.ftruncate(self._descriptor, start + lines.rfind(b"\n", 0, written) + 1)
            if isinstance(error, OSError):
                self.is_broken = True
                raise AggdecError(f"{self.name}: cannot be written ({error.strerror})") from error
            raise


def text_in_whole_lines(lines: WholeLines, encoding: str = "utf-8", errors: str | None = None) -> io.TextIOWrapper:
    """A text file that writes through `lines`."""
    return io.TextIOWrapper(lines, encoding=encoding, errors=errors, newline="\n", write_through=True)


@contextmanager
def in_whole_lines(file: TextIO) -> Iterator[TextIO]:
    """Replaces `file`, and the log's, by one that writes whole lines until the block ends; leaves a terminal alone.

    A log that cannot be written is no error; the next line of output will be one.
    """
    try:
        descriptor = file.fileno()
    except OSError:
        descriptor = -1
    if descriptor < 0 or os.isatty(descriptor):
        yield file
        return
    file.flush()
    lines = WholeLines(descriptor, "the standard output" if file is sys.stdout else str(file.name))
    text = text_in_whole_lines(lines, file.encoding, file.errors)
    _log_to(file, text)
    told, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        yield text
    finally:
        _log_to(text, sys.stderr if lines.is_broken else file)
        logging.raiseExceptions = told
        text.close()


def _log_to(before: TextIO, after: TextIO) -> None:
    """Moves the log from one stream to another."""
    for handler in logging.root.handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is before:
            handler.setStream(after)


def _results(main: Callable[[Any, TextIO], Any]) -> Callable[[Any, TextIO], Any]:
    @functools.wraps(main)
    def with_whole_lines(cfg: Any, output_file: TextIO) -> Any:
        with in_whole_lines(output_file) as lines:
            return main(cfg, lines)

    return with_whole_lines


def _answers(main: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(main)
    def with_whole_lines(cfg: Any, **kwargs: Any) -> None:
        with in_whole_lines(sys.stdout) as lines, redirect_stdout(lines):
            main(cfg, **kwargs)

    return with_whole_lines


def install() -> None:
    """Make fairseq-generate and fairseq-interactive write whole lines, where one of them is the running command."""
    for name, function, mended in (("generate", "_main", _results), ("interactive", "main", _answers)):
        command = running_command(name)
        if command is not None and not hasattr(command, "writes_whole_lines"):
            setattr(command, function, mended(getattr(command, function)))
            command.writes_whole_lines = True  # type: ignore[attr-defined]
