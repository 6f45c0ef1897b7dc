"""The repository's size: `python -m tests.repository.test_budget` prints the table that the test holds.

Python is counted in tokens, as what a reader has to read: names, operators, numbers and strings. Comments, docstrings,
line breaks and indentation cost nothing, so that no line is squeezed and no explanation left out to meet a limit.
"""

import ast
import io
import token
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest
from tabulate import tabulate

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NOT_READ = LAYOUT | {tokenize.COMMENT, tokenize.ENCODING, token.ENDMARKER}

Row = tuple[str, float, float]
"""what is counted, its size, and the limit; a commit that raises a limit says why"""


def sizes() -> list[Row]:
    """Every size that has a budget."""
    docs = ROOT / "docs"
    pages = list(docs.glob("*.md"))
    records = list(docs.rglob("*.json"))
    return [
        ("fairseq_aggdec, tokens of Python", _tokens("fairseq_aggdec"), 195_430),
        ("- engine", _tokens("fairseq_aggdec/engine"), 52_000),
        ("- generation", _tokens("fairseq_aggdec/generation"), 9_990),
        ("- tuples of unrelated values", _tuples("fairseq_aggdec"), 0),
        ("tests, tokens of Python", _tokens("tests"), 166_700),
        ("- tuples of unrelated values", _tuples("tests"), 0),
        ("configs, tokens of Python", _tokens("configs"), 59_850),
        ("docs, pages at the top", len(pages), 18),
        ("- their lines", _lines(pages), 2_586),
        ("docs, further pages", len(list(docs.rglob("*.md"))) - len(pages), 3),
        (
            "docs, megabytes of JSON",
            sum(path.stat().st_size for path in records) / 1e6,
            0.19,
        ),
        (
            "- lines of the longest record",
            max((_lines([path]) for path in records), default=0),
            50,
        ),
        ("README.md, lines", _lines([ROOT / "README.md"]), 120),
        ("CHANGELOG.md, lines", _lines([ROOT / "CHANGELOG.md"]), 60),
    ]


def _tokens(folder: str) -> int:
    return sum(
        len(tokens_to_read(path.read_text("utf-8")))
        for path in (ROOT / folder).rglob("*.py")
    )


def _tuples(folder: str) -> int:
    return sum(
        is_unrelated(node)
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )


def is_unrelated(node: ast.AST) -> bool:
    """Whether it is `a, b = x, y`: two lines in one. A swap, or a step that reads what it writes, is none."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    [target, *_] = node.targets
    if not isinstance(target, ast.Tuple):
        return False
    written = set(map(ast.unparse, target.elts))
    return written.isdisjoint(map(ast.unparse, ast.walk(node.value)))


def tokens_to_read(source: str) -> list[tokenize.TokenInfo]:
    """The tokens of a module without comments, layout and strings that are statements, as docstrings are.

    A comma after the last of several lines is layout, too.
    """
    found: list[tokenize.TokenInfo] = []
    begins = True  # whether the next token is the first of a statement
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for here, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if here.type in NOT_READ:
            begins = begins or here.type in LAYOUT - {tokenize.NL}
            continue
        if (
            found
            and found[-1].string == ","
            and here.string in ")]}"
            and here.start[0] > found[-1].start[0]
        ):
            found.pop()
        is_docstring = (
            begins and here.type == tokenize.STRING and after.type == tokenize.NEWLINE
        )
        found += [here] * (not is_docstring)
        begins = False
    return found


def _lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


@pytest.mark.parametrize("row", sizes(), ids=lambda row: row[0].removeprefix("- "))
def test_no_part_is_over_its_limit(row: Row) -> None:
    _, size, limit = row
    assert size <= limit


def test_explanations_and_line_breaks_cost_nothing() -> None:
    dense = "def twice(x: int) -> int: return 2 * x\n"
    plain = '"""Module."""\n\n# why\ndef twice(x: int) -> int:\n    """Twice x."""\n\n    return 2 * x  # exact\n'
    assert len(tokens_to_read(dense)) == len(tokens_to_read(plain)) == 14
    assert len(tokens_to_read('name = "not a docstring"\n')) == 3
    assert (
        len(tokens_to_read("f(a, b)"))
        == len(tokens_to_read("f(\n    a,\n    b,\n)"))
        == 6
    )


@pytest.mark.parametrize("folder", ["fairseq_aggdec", "tests", "configs", "scripts"])
def test_a_line_can_be_read_at_a_glance(folder: str) -> None:
    """Tokens on a line of code, of files of 60 such lines and more."""
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text("utf-8")
        tokens = tokens_to_read(text)
        lines = len({token.start[0] for token in tokens})
        most = 11 if "@triton.jit" in text else 9.5
        assert lines < 60 or len(tokens) <= most * lines, path


def test_a_class_can_be_read_on_a_few_screens() -> None:
    for path in (ROOT / "fairseq_aggdec").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                height = (node.end_lineno or 0) - node.lineno
                assert height <= 250, (path, node.name)


def test_a_tuple_of_unrelated_values_is_told_from_a_swap() -> None:
    def found(code: str) -> bool:
        return any(map(is_unrelated, ast.walk(ast.parse(code))))

    assert found("a, b = 1, f(c)")
    assert found("self.a, b = x, y")
    assert not found("a, b = b, a")
    assert not found("last, count = line, count + 1")
    assert not found("a, b = pair")


def table() -> str:
    """The sizes, their limits, and below them the tokens of each folder of the package."""
    package = ROOT / "fairseq_aggdec"
    folders = sorted(
        path.name
        for path in package.iterdir()
        if any(path.rglob("*.py")) and path.is_dir()
    )
    tokens = [(name, _tokens(f"fairseq_aggdec/{name}")) for name in folders]
    return "\n\n".join(
        [
            tabulate(sizes(), ["", "now", "limit"], "github", floatfmt=",.10g"),
            tabulate(
                tokens, ["folder of fairseq_aggdec", "tokens"], "github", intfmt=","
            ),
        ]
    )


if __name__ == "__main__":
    print(table())
