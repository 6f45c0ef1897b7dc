"""Text files with one sentence in a line, gzipped or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, open_lines, written_whole
from fairseq_aggdec.structured_files import parse


def given_file(path: Path) -> Path:
    """The path itself.

    Raises:
        AggdecError: there is no such file; the message names the variable for the folder of data sets.
    """
    if not path.is_file():
        raise AggdecError(
            f"{path} does not exist: set AGGDEC_DATA to the folder that holds the data sets"
        )
    return path


def read_lines(path: Path, column: int | None = None) -> Iterator[str]:
    """Yield the lines of a text file, gzipped or not, or a column of its table with tabs.

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
                raise AggdecError(
                    f"{path}, line {number}: has no column {column}, counted from 0: {line[:60]!r}"
                )
            yield fields[column]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, which exists only when it is complete."""
    with (
        written_whole(path) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as output,
    ):
        output.writelines(line + "\n" for line in lines)


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of two files with one sentence in a line, with single spaces.

    Raises:
        AggdecError: a file is missing, damaged, or shorter than the other.
    """
    for before, pair in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if None in pair:
            shorter, longer = (source, target) if pair[0] is None else (target, source)
            raise AggdecError(
                f"{shorter} ends after {before} lines, {longer} does not: they must have as many"
            )
        yield one_space(pair[0]), one_space(pair[1])


def read_table(path: Path, columns: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """Yield columns of a table with tabs, as `read_lines` reads each."""
    return zip(*(read_lines(path, column) for column in columns), strict=True)


def one_space(line: str) -> str:
    """The line with single spaces, none at its ends."""
    return " ".join(line.split())


def read_json_lines(
    lines: Iterable[str], name: str, *fields: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line's place, for error messages, and the JSON object in it, which has these fields.

    Args:
        lines: JSON objects.
        name: the name of the file.
        fields: names of fields.

    Raises:
        AggdecError: a line is no JSON object, or lacks a field.
    """
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        record = parse(line, dict[str, Any], where, "mend or leave out the line")
        if not all(field in record for field in fields):
            raise AggdecError(
                f"{where}: a JSON object is expected, with {' and '.join(fields)}"
            )
        yield where, record


def strings(value: Any, where: str) -> list[str]:
    """A string or a list of strings, as a list.

    Raises:
        AggdecError: it is neither; the message names the place `where`.
    """
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(
        isinstance(item, str) for item in values
    ):
        raise AggdecError(
            f"{where}: a string or a list of strings is expected, not {str(value)[:60]!r}"
        )
    return values
