"""Traces of decoded sentences, on the terminal and as a page."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.cli.report import main
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.stats_file import DecodedText, StatsFile
from fairseq_aggdec.lab.reporting.trace_page import page
from fairseq_aggdec.lab.reporting.traces import TraceFile, read_traces

# a bifurcation, a step without a draft, a bonus token, and a draft that has the end
STATS = SentenceStats(drafted=[4, 0, 2, 2], accepted=[1, 0, 2, 2], committed=[2, 1, 3, 2])
TEXT = DecodedText(
    source=["A@@", "x", "<b>"],
    output=["a", "<i>", "c", "d", "e", "\033[31mf", "g", "</s>"],
    drafts=[["a", "b & b", "q", "</s>"], [], ["d", "e"], ["g", "</s>"]],
)


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    path = tmp_path / "gad.jsonl"
    file = StatsFile(str(path))
    for number in (7, 2):
        file.write(number, [4, 5], [4, 5, 6], STATS, 0.1, TEXT)
    return path


def test_numbers_choose_sentences(stats: Path) -> None:
    assert [trace.number for trace in read_traces(stats)] == [2, 7]
    assert [trace.number for trace in read_traces(stats, limit=1)] == [2]
    (trace,) = read_traces(stats, [7])
    assert trace.output == TEXT.output
    assert trace.summary == "8 tokens in 4 iterations, 2.00 an iteration; 8 drafted, 5 of them accepted"
    assert [part.step for part in trace.parts] == ["bifurcation", "re-decoded", "bonus token", "draft to the end"]


def test_on_the_terminal(stats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["trace", str(stats), "--sentences", "7", "--colour", "never"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        "== gad",
        "",
        "7: 8 tokens in 4 iterations, 2.00 an iteration; 8 drafted, 5 of them accepted",
        "  source  A@@ x <b>",
        "       1  [a] <i> /b & b q </s>/  (bifurcation: 1 of 4 drafted tokens accepted)",
        "       2  c  (re-decoded: a single step without a draft)",
        "       3  [d e] �[31mf  (2 of 2 drafted tokens accepted, and a bonus token)",
        "       4  [g </s>]  (2 of 2 drafted tokens accepted, to the end of the sentence)",
        "  output  a <i> c d e �[31mf g </s>",
    ]
    main(["trace", str(stats), "--sentences", "7", "--colour", "always"])
    text = capsys.readouterr().out
    for piece in ("\033[34ma\033[0m \033[1;31m<i>\033[0m", "\033[33mc\033[0m", "\033[32m�[31mf\033[0m"):
        assert piece in text
    main(["trace", str(stats)])  # pytest's capture is no terminal
    assert "\033" not in capsys.readouterr().out


class Elements(HTMLParser):
    """Checks that elements are nested well, and takes text by class."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            tag, attributes = self.open[-1]
            self.texts.append((attributes.get("class") or f"<{tag}>", data))


def parsed(text: str) -> Elements:
    elements = Elements()
    elements.feed(text)
    elements.close()
    assert not elements.open
    return elements


def test_the_page(stats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    main(["trace", str(stats), "--html", str(output), "--title", "Q <&> A"])
    assert capsys.readouterr().out == f"{output}\n"
    text = output.read_text(encoding="utf-8")
    elements = parsed(text)
    assert ("<h1>", "Q <&> A") in elements.texts
    table = [entry for entry in elements.texts if entry[0] in ("p", "a", "x", "<del>", "bif", "bon", "one")]
    legend, rows = table[:7], table[7:]
    assert len({kind for kind, _ in legend}) == 7, "everything that occurs is explained"
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :], "two sentences of the same content"
    assert rows[: len(rows) // 2] == [
        *(("a", "a"), ("x", "b & b"), ("<del>", "q </s>")),  # draft, and what was made of it
        *(("a", "a"), ("bif", "<i>")),
        *(("p", "a <i>"), ("one", "c")),
        *(("p", "a <i> c"), ("a", "d e")),
        *(("p", "a <i> c"), ("a", "d e"), ("bon", "\033[31mf")),
        *(("p", "a <i> c d e \033[31mf"), ("a", "g </s>")),
        *(("p", "a <i> c d e \033[31mf"), ("a", "g </s>")),
    ]
    assert "bifurcation: 1 of 4 drafted tokens accepted" in text


def test_the_page_needs_nothing_from_outside(stats: Path) -> None:
    text = page([TraceFile("gad", read_traces(stats))], "Title")
    elements = parsed(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(elements.tags)
    assert not {"src", "href", "style", "onclick"} & {name for name, _ in elements.attributes}
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert style.count("{") == style.count("}")
    assert "prefers-color-scheme: dark" in style
    used = {name for _, value in elements.attributes if value for name in value.split()} & {
        "bif",
        "bon",
        "one",
        "a",
        "p",
    }
    assert all(f".{name} {{" in style for name in used)


def change(path: Path, **fields: Any) -> None:
    record = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    path.write_text(json.dumps(record | fields) + "\n", encoding="utf-8")


def test_what_is_wrong_is_said(stats: Path, tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"gad.jsonl: has no sentences 3, 9"):
        main(["trace", str(stats), "--sentences", "2,3,9"])
    with pytest.raises(AggdecError, match=r"--sentences two: give numbers separated by commas"):
        main(["trace", str(stats), "--sentences", "two"])
    with pytest.raises(AggdecError, match=r"nothing.jsonl: No such file"):
        main(["trace", str(tmp_path / "nothing.jsonl")])
    change(stats, committed_per_iteration=[2, 1, 3, 3])
    with pytest.raises(AggdecError, match=r"gad.jsonl, line 1: not of --decoding-stats .*counters do not fit"):
        main(["trace", str(stats)])
    StatsFile(str(stats)).write(1, [4], [4], SentenceStats([1], [1], [1]), None)
    with pytest.raises(AggdecError, match=r"line 1: has no drafts; decode with .*--retain-iter-history"):
        main(["trace", str(stats)])
