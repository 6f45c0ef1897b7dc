"""The tables of learners' errors, and how they are written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs.gec_small.errors import word_tables
from configs.gec_small.errors.word_tables import table

CONFUSIONS = sorted(
    path.stem
    for path in (Path(word_tables.__file__).parent / "tables").iterdir()
    if path.stem not in ("classes", "irregular_plurals", "irregular_verbs")
)


@pytest.mark.parametrize("name", CONFUSIONS)
def test_every_word_has_wrong_forms_and_is_none_of_them(name: str) -> None:
    assert table(name)
    for correct, wrong in table(name).items():
        assert correct not in wrong
        assert len(set(wrong)) == len(wrong)
        assert all(form == " ".join(form.split()) != "" for form in wrong), correct


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that a test writes, as `table("own")` reads it."""
    monkeypatch.setattr(word_tables, "_FOLDER", tmp_path)
    monkeypatch.setattr(word_tables, "table", table.__wrapped__)
    return tmp_path / "own.txt"


def test_entries_may_span_lines_and_hold_phrases(written: Path) -> None:
    written.write_text("# What it is.\na lot of: alot of,\n    lots of\n\n# More of it.\nto: too\n")
    assert word_tables.table("own") == {"a lot of": ("alot of", "lots of"), "to": ("too",)}
