"""docs/corrector.md shows what the shipped corrector says."""

import re
from pathlib import Path

from fairseq_aggdec import load
from fairseq_aggdec.text.edits import marked

PAGE = Path(__file__).parents[2] / "docs" / "corrector.md"


def source(shown: str) -> str:
    """A text without the marks of its changes."""
    return re.sub(r"\[-(.*?)-\]", r"\1", re.sub(r"\{\+.*?\+\}", "", shown))


def test_the_pasted_paragraphs_are_corrected_as_the_page_shows() -> None:
    shown = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.S)
    texts = list(map(source, shown))
    results = load.shipped("gec").correct(texts)
    assert len(shown) == 10
    assert [marked(result) for result in results] == shown


def test_the_unseen_inputs_are_corrected_as_the_page_shows() -> None:
    block = re.findall(r"```forty\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.S)[0]
    lines = [line.replace(" ⏎ ", "\n").replace(" ⇥ ", "\t") for line in block.splitlines()]
    shown = [line for line in lines if not line.startswith("    was ")]
    results = load.shipped("gec").correct(list(map(source, shown)))
    assert len(shown) == 40
    assert [marked(result) for result in results] == shown
