"""The repository's size: `python -m tests.repository.test_budget` prints the table that the test holds."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from tabulate import tabulate

ROOT = Path(__file__).resolve().parents[2]
LABORATORY = ("lab",)

Row = tuple[str, float, float]
"""what is counted, its size, and the limit; a commit that raises a limit says why"""


def sizes() -> list[Row]:
    """Every size that has a budget; lines of Python are those of *.py files, comments and docstrings included."""
    package, docs = ROOT / "fairseq_aggdec", ROOT / "docs"
    whole = _lines(package.rglob("*.py"))
    laboratory = sum(_lines((package / name).rglob("*.py")) for name in LABORATORY)
    command_line = _lines((package / "cli").rglob("*.py"))
    pages, records = list(docs.glob("*.md")), list(docs.rglob("*.json"))
    return [
        ("fairseq_aggdec, lines of Python", whole, 27_279),
        (f"- laboratory: {', '.join(LABORATORY)}", laboratory, 4_742),
        ("- command line: cli", command_line, 1_305),
        ("- plugin: all else", whole - laboratory - command_line, 21_232),
        ("tests, lines of Python", _lines((ROOT / "tests").rglob("*.py")), 19_215),
        ("docs, pages at the top", len(pages), 17),
        ("- their lines", _lines(pages), 2_475),
        ("docs, further pages", len(list(docs.rglob("*.md"))) - len(pages), 3),
        ("docs, megabytes of JSON", sum(path.stat().st_size for path in records) / 1e6, 0.22),
        ("- lines of the longest record", max((_lines([path]) for path in records), default=0), 50),
        ("README.md, lines", _lines([ROOT / "README.md"]), 120),
        ("CHANGELOG.md, lines", _lines([ROOT / "CHANGELOG.md"]), 60),
    ]


def _lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


@pytest.mark.parametrize("row", sizes(), ids=lambda row: row[0].removeprefix("- "))
def test_no_part_is_over_its_limit(row: Row) -> None:
    _, size, limit = row
    assert size <= limit


def table() -> str:
    """The sizes, their limits, and below them the lines of each folder of the package."""
    folders = sorted((path.name, _lines(path.rglob("*.py"))) for path in (ROOT / "fairseq_aggdec").iterdir())
    lines = [(name, count) for name, count in folders if count]
    return "\n\n".join(
        [
            tabulate(sizes(), ["", "now", "limit"], "github", floatfmt=",.10g"),
            tabulate(lines, ["folder of fairseq_aggdec", "lines"], "github", intfmt=","),
        ]
    )


if __name__ == "__main__":
    print(table())
