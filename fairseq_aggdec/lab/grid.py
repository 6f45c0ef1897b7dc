"""Writes tables as Markdown, as LaTeX, or for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tabulate import tabulate

MARKDOWN, TERMINAL = "github", "simple"
"""forms of `text_table`"""
DASH = "–"
"""entry for a number that was not measured"""


def text_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    form: str = MARKDOWN,
    numbers: bool = False,
    widths: Sequence[int | None] | None = None,
) -> str:
    """A table with aligned columns.

    Args:
        headers: headings; one may have several lines, which Markdown joins to one.
        rows: each has as many cells as there are headers.
        form: `MARKDOWN` or `TERMINAL`.
        numbers: align all columns but the first to the right, in the text and where Markdown is rendered.
        widths: largest width of each column in characters; None for no limit.
    """
    aligned = ["left", *["right" if numbers else "left"] * (len(headers) - 1)]
    if form == MARKDOWN:
        headers = [_cell(header.replace("\n", " ")) for header in headers]
        rows = [list(map(_cell, row)) for row in rows]
        form = "pipe" if numbers else MARKDOWN  # `pipe` marks the alignment
    return tabulate(
        rows, headers, tablefmt=form, disable_numparse=True, colalign=aligned if rows else None, maxcolwidths=widths
    )


@dataclass(frozen=True)
class Group:
    """Columns under one heading."""

    heading: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table whose columns are in groups."""

    name: str
    """name for LaTeX's label: letters, digits, hyphens"""
    title: str
    first: str
    """heading of the first column, which has the rows' names"""
    groups: tuple[Group, ...]
    rows: tuple[tuple[str, ...], ...]
    """each row has its name and one entry for each column"""
    notes: tuple[str, ...] = field(default=())
    """sentences above the table"""
    numbers: bool = True
    """whether all columns but the first are numbers, aligned to the right"""


def markdown(grid: Grid) -> str:
    """The title as a heading, the notes, and the table."""
    headers = [grid.first]
    for group in grid.groups:
        # Markdown has one line of headings, so the group's heading stands in its first column
        headers += [_joined(group.heading, group.columns[0]), *group.columns[1:]]
    return "\n\n".join([f"## {grid.title}", *grid.notes, text_table(headers, grid.rows, numbers=grid.numbers)])


def latex(grid: Grid) -> str:
    """A floating table for a document with the package booktabs; all text is escaped."""
    grouped = any(len(group.columns) > 1 for group in grid.groups)
    ends, begins, last = [], [], 1
    for group in grid.groups:
        begins.append(last + 1)
        last += len(group.columns)
        ends.append(last)
    lines = [
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{escape(' '.join([_sentence(grid.title), *grid.notes]))}}}",
        rf"\label{{tab:{grid.name}}}",
        rf"\begin{{tabular}}{{l{('r' if grid.numbers else 'l') * (last - 1)}}}",
        r"\toprule",
    ]
    if grouped:
        heads = [rf"\multicolumn{{{len(group.columns)}}}{{c}}{{{escape(group.heading)}}}" for group in grid.groups]
        lines.append(_row(["", *heads]))
        rules = [rf"\cmidrule(lr){{{begin}-{end}}}" for begin, end in zip(begins, ends, strict=True)]
        lines.append(" ".join(rules))
    names = [name for group in grid.groups for name in (group.columns if grouped else [group.heading])]
    lines += [_row(map(escape, [grid.first, *names])), r"\midrule"]
    lines += [_row(map(escape, row)) for row in grid.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after \\, LaTeX takes a bracket for an option
    "]": "{]}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "β": r"$\beta$",
    "τ": r"$\tau$",
    "ε": r"$\varepsilon$",
    "Δ": r"$\Delta$",
    "→": r"$\rightarrow$",
    "↔": r"$\leftrightarrow$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
"""characters that LaTeX reads as commands or that its usual fonts lack"""


def escape(text: str) -> str:
    """The text, so written that LaTeX prints it unchanged."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _row(entries: Sequence[str] | map[str]) -> str:
    return " & ".join(entries) + r" \\"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _joined(heading: str, column: str) -> str:
    return f"{heading}, {column}" if column else heading


def _sentence(title: str) -> str:
    return title if title.endswith(".") else f"{title}."
