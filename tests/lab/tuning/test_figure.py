from pathlib import Path

import pytest

from fairseq_aggdec.lab.tuning.figure import draw
from tests.lab.tuning.papers import papers_sweep


@pytest.mark.parametrize("suffix", ["svg"])
def test_figures_are_drawn_the_same_every_time(tmp_path: Path, suffix: str) -> None:
    sweep = papers_sweep(tmp_path)
    chosen = {"high-quality": next(iter(sweep.points.values())), "high-efficiency": None}
    first, second = (tmp_path / f"{name}.{suffix}" for name in ("first", "second"))
    for path in (first, second):
        draw(sweep, "BLEU", chosen, path)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 5000
    if suffix == "svg":
        assert "high-quality" in first.read_text()
