"""docs/CONTRIBUTING.md: the drafter on the page is lossless, and some of its drafts pass."""

import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.generation.drafting import DRAFTERS
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import MODES
from tests.generation.test_generator import JOINED, assert_same_up_to_near_ties, cached_model, decode, stock_beam_one
from tests.support.random_models import ENGINE_SHAPES, random_batch

PAGE = Path(__file__).resolve().parents[2] / "docs/CONTRIBUTING.md"


def test_the_drafter_on_the_page_is_lossless(monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    for table in (MODES, DRAFTERS):
        monkeypatch.setitem(table, "repeating", None)  # so that it is gone afterwards
    page: dict[str, Any] = {}
    exec(code, page)
    accepted = 0
    for shape in ENGINE_SHAPES[:3]:
        for seed in range(3):
            models, sample = [cached_model(shape, seed)], random_batch(seed, JOINED, [9, 5, 1])
            generator = AggressiveGenerator.of(models, JOINED, src_dict=JOINED, decoding="repeating", max_len_b=60)
            found = decode(generator, models, sample)
            assert_same_up_to_near_ties(found, stock_beam_one(models, JOINED, sample, max_len_b=60), models, sample)
            accepted += generator.totals.accepted
    assert accepted > 20
