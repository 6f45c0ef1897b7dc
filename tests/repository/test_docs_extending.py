"""docs/CONTRIBUTING.md: the drafter on the page is lossless, and some of its drafts pass."""

import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.generation.drafting import DRAFTERS
from fairseq_aggdec.generation.modes import MODES
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import ENGINE_SHAPES, random_batch
from tests.support.small_generators import FEW_WORDS, cached_model, generator

PAGE = Path(__file__).resolve().parents[2] / "docs/CONTRIBUTING.md"


def test_the_drafter_on_the_page_is_lossless(monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(
        r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    tables: list[Any] = [MODES, DRAFTERS]
    for table in tables:
        monkeypatch.setitem(table, "repeating", None)  # so that it is gone afterwards
    page: dict[str, Any] = {}
    exec(code, page)
    accepted = 0
    for shape in ENGINE_SHAPES[:3]:
        for seed in range(3):
            models, sample = (
                [cached_model(shape, seed)],
                random_batch(seed, FEW_WORDS, [9, 5, 1]),
            )
            ours = generator(models, "repeating", FEW_WORDS, max_len_b=60)
            assert_fairseqs(
                ours.generate(models, sample), models, FEW_WORDS, sample, max_len_b=60
            )
            accepted += ours.totals.accepted
    assert accepted > 20
