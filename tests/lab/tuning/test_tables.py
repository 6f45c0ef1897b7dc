from pathlib import Path

from fairseq_aggdec.lab.tuning.tables import draw, table
from tests.lab.tuning.papers import papers_sweep


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_settings_as_in_the_paper_with_those_that_the_rule_chooses() -> None:
    heading, _, _, greedy, ten, *others = rows(table(papers_sweep(), "BLEU", margin=0.4, loss=-0.2))
    assert heading == ["", "k", "β", "τ", "Tok.", "BLEU", "speed", "chosen"]
    assert greedy == ["greedy", "", "", "", "1.00", "26.62", "1.25x", ""]
    # 200 s of greedy over 100/5.97 s in the same rounds, times 500 s of beam search over 400 s of greedy in theirs
    assert ten == ["gad++", "10", "3", "1", "5.97", "26.68", "14.92x", ""]
    assert {row[-1]: row[1:4] for row in others if row[-1]} == {
        "high-quality": ["25", "5", "1"],
        "high-efficiency": ["25", "5", "3"],
    }
    assert rows(table(papers_sweep(), "BLEU", margin=0.0, loss=0.5))[-2][-1] == "high-quality, high-efficiency"
    assert "high-quality: none of these settings" in table(papers_sweep(), "BLEU", margin=9.0, loss=0.5)


def test_figures_are_drawn_the_same_every_time(tmp_path: Path) -> None:
    first, second = (tmp_path / f"{name}.svg" for name in ("first", "second"))
    for path in (first, second):
        draw(papers_sweep(), "BLEU", path)
    assert first.read_bytes() == second.read_bytes()
