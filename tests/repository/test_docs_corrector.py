"""docs/corrector.md shows what the shipped corrector says."""

import re
from pathlib import Path

from fairseq_aggdec import load
from fairseq_aggdec.text.edits import marked

PAGE = Path(__file__).parents[2] / "docs" / "corrector.md"


def source(shown: str) -> str:
    """A text without the marks of its changes."""
    return re.sub(r"\[-(.*?)-\]", r"\1", re.sub(r"\{\+.*?\+\}", "", shown))


def test_texts_are_corrected_as_the_page_shows() -> None:
    """Five pasted paragraphs, and forty inputs that nobody had tried before."""
    page = PAGE.read_text(encoding="utf-8")
    paragraphs = re.findall(r"```text\n(.*?)\n```", page, re.S)
    [forty] = re.findall(r"```forty\n(.*?)\n```", page, re.S)
    lines = [
        line.replace(" ⏎ ", "\n").replace(" ⇥ ", "\t") for line in forty.splitlines()
    ]
    shown = [*paragraphs, *(line for line in lines if not line.startswith("    was "))]
    assert len(shown) == 5 + 40
    results = load.shipped("gec").correct(list(map(source, shown)))
    assert [marked(result) for result in results] == shown
