"""docs/corrector.md shows what the shipped corrector says."""

import re
from pathlib import Path

from fairseq_aggdec import load
from fairseq_aggdec.cli.text_command import MARKS, marked

PAGE = Path(__file__).parents[1] / "docs" / "corrector.md"


def test_the_pasted_paragraphs_are_corrected_as_the_page_shows() -> None:
    shown = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.S)
    texts = [re.sub(r"\[-(.*?)-\]", r"\1", re.sub(r"\{\+.*?\+\}", "", one)) for one in shown]
    results = load.shipped("gec").decode(texts, "iad++", top_beta=5, tolerance=2.0)
    assert len(shown) == 10
    assert [marked(result, MARKS) for result in results] == shown
