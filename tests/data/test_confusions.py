"""The tables of learner confusions."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data import confusions

TABLES = {
    name: table for name, table in vars(confusions).items()
    if name.isupper() and isinstance(table, dict) and name != "PHRASES_BY_FIRST_WORD"
}  # fmt: skip


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_hold_confusions_only(name: str) -> None:
    for correct, wrong in TABLES[name].items():
        assert wrong, correct
        assert correct not in wrong
        assert all(form == " ".join(form.split()) != "" for form in wrong)
