"""Writes tables as Markdown, as LaTeX, or for a terminal."""

from collections.abc import Sequence

from tabulate import tabulate

MARKDOWN = "github"
TERMINAL = "simple"
LATEX = "latex_booktabs"
"""forms of `text_table`; LaTeX needs the package booktabs"""
DASH = "–"
"""entry for what was not measured"""


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
        form: `MARKDOWN`, `TERMINAL` or `LATEX`.
        numbers: align all columns but the first to the right, in the text and where Markdown is rendered.
        widths: largest width of each column in characters; None for no limit.
    """
    aligned = ["left", *["right" if numbers else "left"] * (len(headers) - 1)]
    if form == MARKDOWN:
        headers = [_cell(header.replace("\n", " ")) for header in headers]
        rows = [list(map(_cell, row)) for row in rows]
        form = "pipe" if numbers else MARKDOWN  # `pipe` marks the alignment
    return tabulate(
        rows,
        headers,
        tablefmt=form,
        disable_numparse=True,
        colalign=aligned if rows else None,
        maxcolwidths=widths,
    )


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
