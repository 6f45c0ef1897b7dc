"""Tables as Markdown, as LaTeX and for a terminal."""

from fairseq_aggdec.lab.grid import LATEX, text_table

HEADERS, ROWS = ["mode", "tokens\na second"], [["gad|iad", "7"], ["x", ""]]


def test_markdown() -> None:
    assert text_table(HEADERS, ROWS).splitlines() == [
        "| mode     | tokens a second   |",
        "|----------|-------------------|",
        r"| gad\|iad | 7                 |",
        "| x        |                   |",
    ]
    assert text_table(HEADERS, ROWS, numbers=True).splitlines()[1] == "|:---------|------------------:|"
    assert "mode" in text_table(HEADERS, [])


def test_latex() -> None:
    text = text_table(["system", "100 %"], [["a_b & c", "1"]], LATEX, numbers=True)
    assert r"\begin{tabular}{lr}" in text
    assert r"a\_b \& c & 1" in " ".join(text.split())
