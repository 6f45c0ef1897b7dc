"""What fairseq-interactive reads: a line that is not UTF-8 is named, and a line that cannot be decoded is left out."""

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType

from fairseq_aggdec.errors import AggdecError


def buffered_read(input: str, buffer_size: int) -> Iterator[list[str]]:
    """Replaces fairseq's function of this name, which ends with a traceback at bytes that are not UTF-8.

    It would do so before the lines ahead of them, which were read together with them, have been answered.

    Yields:
        stripped lines of a file, or of the standard input for `-` (--input), `buffer_size` at a time (--buffer-size);
        fewer at the end and before an error.

    Raises:
        AggdecError: the file cannot be read, a line is not UTF-8, or, at the end, lines were left out.
    """
    _left_out.clear()
    name = "the standard input" if input == "-" else input
    buffer: list[str] = []
    with _opened(input) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.encode("utf-8")
            except UnicodeEncodeError as error:
                if buffer:
                    yield buffer
                byte = ord(line[error.start]) - 0xDC00
                raise AggdecError(
                    f"{name}, line {number}: not valid UTF-8 (byte 0x{byte:02x} at character {error.start + 1}); "
                    "convert the text, for example with iconv -t UTF-8"
                ) from None
            buffer.append(line.strip())
            if len(buffer) >= buffer_size:
                yield buffer
                buffer = []
    if buffer:
        yield buffer
    if _left_out:
        raise AggdecError(f"{len(_left_out)} of the lines have no output; each is named above")


_left_out: list[str] = []


def leave_out(message: str) -> None:
    """Say why a line has no output; the command goes on, and ends with an error."""
    _left_out.append(message)
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr)


def _opened(input: str) -> nullcontext[io.TextIOWrapper] | io.TextIOWrapper:
    """The opened text, with undecodable bytes as lone surrogates."""
    if input == "-":
        assert isinstance(sys.stdin, io.TextIOWrapper)
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        return nullcontext(sys.stdin)
    try:
        return open(input, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise AggdecError(f"--input {input}: cannot be read ({error.strerror})") from None


def install() -> None:
    """Put `buffered_read` into fairseq-interactive, where that is the running command."""
    command = running_command("interactive")
    if command is not None:
        command.buffered_read = buffered_read  # type: ignore[attr-defined]


def running_command(name: str) -> ModuleType | None:
    """The module of a command of fairseq's, such as `generate`, if this process runs it; else None."""
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", None) == f"fairseq_cli.{name}":  # python -m
        return main
    return sys.modules.get(f"fairseq_cli.{name}")
