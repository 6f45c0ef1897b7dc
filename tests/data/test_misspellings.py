"""The table of typical misspellings."""

from __future__ import annotations

from fairseq_aggdec.data.misspellings import MISSPELLINGS


def test_misspellings_cover_frequent_words() -> None:
    assert len(MISSPELLINGS) >= 300
    assert "recieve" in MISSPELLINGS["receive"]
    assert {word for word in MISSPELLINGS if word.lower() != word} <= {"English"}


def test_a_misspelling_differs_from_its_word_and_has_no_spaces() -> None:
    for correct, wrong in MISSPELLINGS.items():
        assert wrong, correct
        assert correct not in wrong
        assert all(form.split() == [form] for form in wrong), correct
