"""How tables are written down."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data.word_tables import replacement_table, word_set


@pytest.mark.parametrize("text", ["because", "because:", "a: b; a: c", ": x"])
def test_malformed_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="table entry"):
        replacement_table(text)


def test_entries_may_span_lines_and_hold_phrases() -> None:
    text = """
    a lot of: alot of,
        lots of; because: because of, cause;
    """
    assert replacement_table(text, ",") == {"a lot of": ("alot of", "lots of"), "because": ("because of", "cause")}
    assert replacement_table("to: too two;") == {"to": ("too", "two")}


def test_what_equals_the_correct_form_or_stands_twice_is_left_out() -> None:
    assert replacement_table("is: are is are be") == {"is": ("are", "be")}


def test_word_set() -> None:
    assert word_set(" a\n the  an a ") == {"a", "an", "the"}
