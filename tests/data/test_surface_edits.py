"""Errors of writing: each edit makes the error it names, one, or none where it finds no place."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data import surface_edits
from fairseq_aggdec.data.corruption import Edit
from fairseq_aggdec.data.lexicon import build_lexicon
from tests.data.essays import outcomes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (surface_edits.spelling, "It is because of you.", "It is becuase of you."),
        (surface_edits.real_word, "It came from Rome.", "It came form Rome."),
        (surface_edits.comma_deletion, "First, we ate.", "First we ate."),
        (surface_edits.comma_insertion, "I said that he left.", "I said, that he left."),
        (surface_edits.final_mark, "We ate.", "We ate"),
        (surface_edits.sentence_mark, "We ate; he left.", "We ate, he left."),
        (surface_edits.apostrophe, "I don't know.", "I dont know."),
        (surface_edits.capital, "We met in London.", "we met in London."),
        (surface_edits.capital, "We met in London.", "We met in london."),
        (surface_edits.spacing, "There is a lot of rain.", "There is alot of rain."),
        (surface_edits.spacing, "It rains sometimes.", "It rains some times."),
        (surface_edits.spacing, "After rain, sun.", "After rain,sun."),
        (surface_edits.spacing, "He has 12 years.", "He has 12years."),
    ],
)
def test_the_error_it_names(edit: Edit, text: str, expected: str) -> None:
    assert expected in outcomes(edit, text)


def test_names_and_unknown_words_are_not_misspelt() -> None:
    """Nobody could restore them."""
    lexicon = build_lexicon({f"word{chr(97 + i % 26)}{chr(97 + i // 26)}": 9 for i in range(2100)} | {"common": 9})
    assert not outcomes(surface_edits.spelling, "A Zbigniew xylomatic.", lexicon)
    assert outcomes(surface_edits.spelling, "A common.", lexicon)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (surface_edits.comma_deletion, "It costs 1,000 pounds."),
        (surface_edits.sentence_mark, "It is 12:30 now."),
        (surface_edits.final_mark, "And then..."),
        (surface_edits.final_mark, "No mark"),
        (surface_edits.apostrophe, "The students' books."),  # at the end of a word: a quotation mark perhaps
        (surface_edits.real_word, "It is From."),  # a name
    ],
)
def test_other_uses_of_a_mark_are_left_alone(edit: Edit, text: str) -> None:
    assert not outcomes(edit, text)
