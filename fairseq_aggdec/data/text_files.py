"""Text files with one sentence in a line, gzipped or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, open_lines, written_whole


def given_file(path: Path) -> Path:
    """The path itself.

    Raises:
        AggdecError: there is no such file; the message names the variable for the folder of data sets.
    """
    if not path.is_file():
        raise AggdecError(f"{path} does not exist: set AGGDEC_DATA to the folder that holds the data sets")
    return path


def read_lines(path: Path, column: int | None = None) -> Iterator[str]:
    """Yields the lines of a text file, gzipped or not, or a column of its table with tabs.

    Raises:
        AggdecError: the file is missing or damaged, or a line has no such column.
    """
    with open_lines(given_file(path)) as (lines, _):
        for number, data in enumerate(lines, start=1):
            line = decode_text(data, str(path), number).rstrip("\r\n")
            if column is None:
                yield line
                continue
            fields = line.split("\t")
            if column >= len(fields):
                raise AggdecError(f"{path}, line {number}: has no column {column}, counted from 0: {line[:60]!r}")
            yield fields[column]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines to a file, which exists only when it is complete."""
    with written_whole(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as output:
        output.writelines(line + "\n" for line in lines)
