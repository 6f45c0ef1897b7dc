"""Tables as Markdown, as LaTeX and for a terminal."""

import re
from pathlib import Path

from fairseq_aggdec.lab.grid import TERMINAL, Grid, Group, latex, markdown, text_table
from fairseq_aggdec.lab.reporting.beside import beside_grids, paper_grid
from fairseq_aggdec.lab.reporting.counterparts import read_tables
from fairseq_aggdec.lab.reporting.paper_tables import all_tables
from tests.lab.reporting.made_up import made_up_results

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
GRID = Grid(
    name="000-5-beside",
    title="100 % & more_or_less",
    first="system",
    groups=(Group("Speed (×)", ("paper", "ours")), Group("R|L", ("paper",))),
    rows=(("GAD++ (τ = 1, {x})", "3.0", "–", "~1"), ("[b] ^\\", "1", "12.5", "−2")),
    notes=("A note.",),
)


def test_markdown_is_aligned() -> None:
    title, note, table = markdown(GRID).split("\n\n")
    assert (title, note) == ("## 100 % & more_or_less", "A note.")
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert re.sub(" +", " ", lines[0]) == r"| system | Speed (×), paper | ours | R\|L, paper |"
    assert re.fullmatch(r"\|:-+\|-+:\|-+:\|-+:\|", lines[1])
    assert lines[2].startswith("| GAD++ (τ = 1, {x}) |")


def test_text_and_numbers() -> None:
    headers, rows = ["mode", "tokens\na second"], [["gad|iad", "7"], ["x", ""]]
    assert text_table(headers, rows).splitlines() == [
        "| mode     | tokens a second   |",
        "|----------|-------------------|",
        r"| gad\|iad | 7                 |",
        "| x        |                   |",
    ]
    lines = text_table(headers, rows, TERMINAL, numbers=True).splitlines()
    assert lines[0].split() == ["mode", "tokens"]
    assert lines[1].split() == ["a", "second"]
    assert lines[3].startswith("gad|iad")
    assert len(lines[3]) == len(lines[1]), "numbers end where their heading ends"
    assert "mode" in text_table(headers, [])


def test_latex() -> None:
    lines = latex(GRID).splitlines()
    assert lines[0] == r"\begin{table}"
    assert r"\caption{100 \% \& more\_or\_less. A note.}" in lines
    assert r"\begin{tabular}{lrrr}" in lines
    assert r" & \multicolumn{2}{c}{Speed ($\times$)} & \multicolumn{1}{c}{R\textbar{}L} \\" in lines
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-4}" in lines
    assert r"system & paper & ours & paper \\" in lines
    assert r"GAD++ ($\tau$ = 1, \{x\}) & 3.0 & -- & \textasciitilde{}1 \\" in lines
    assert r"{[}b{]} \textasciicircum{}\textbackslash{} & 1 & 12.5 & $-$2 \\" in lines
    assert lines[-2:] == [r"\end{tabular}", r"\end{table}"]


def check_latex(text: str) -> None:
    """What a compiler would stop at: groups, environments, columns, characters."""
    assert text.isascii(), sorted({character for character in text if not character.isascii()})
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text.replace("\\\\", "")):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular"]
    assert re.findall(r"\\end\{(\w+)\}", text) == ["tabular", "table"]
    assert not re.search(r"(?<!\\)[%#_]", text.replace(r"\\", "")), "not escaped"
    assert text.replace(r"\$", "").count("$") % 2 == 0
    (columns,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)
    for line in text.splitlines():
        if line.endswith(r" \\") and r"\multicolumn" not in line:
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1, line
    spans = [int(width) for width in re.findall(r"\\multicolumn\{(\d+)\}", text)]
    assert not spans or sum(spans) == len(columns) - 1


def test_every_table_of_the_papers_is_sound_latex() -> None:
    for table in all_tables().values():
        check_latex(latex(paper_grid(table)))
    grids, _ = beside_grids(made_up_results(), list(read_tables(CONFIGS / "tatoeba_en_de").counterparts.values()))
    assert len(grids) >= 2
    for grid in grids:
        check_latex(latex(grid))
