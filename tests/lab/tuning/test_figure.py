from pathlib import Path

from fairseq_aggdec.lab.tuning.figure import draw
from tests.lab.tuning.papers import papers_sweep


def test_figures_are_drawn_the_same_every_time(tmp_path: Path) -> None:
    sweep = papers_sweep(tmp_path)
    chosen = {"high-quality": next(iter(sweep.points.values())), "high-efficiency": None}
    first, second = (tmp_path / f"{name}.svg" for name in ("first", "second"))
    for path in (first, second):
        draw(sweep, "BLEU", chosen, path)
    assert first.read_bytes() == second.read_bytes()
    assert "high-quality" in first.read_text()
