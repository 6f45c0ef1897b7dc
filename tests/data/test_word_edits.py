"""Errors in the choice and order of words: each edit makes the error it names, one, or none where it finds no place."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data import word_edits
from fairseq_aggdec.data.corruption import Edit
from tests.data.essays import outcomes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (word_edits.pronoun, "She likes him.", "She likes his."),
        (word_edits.quantifier, "There are many cars.", "There are much cars."),
        (word_edits.homophone, "They lost their car.", "They lost there car."),
        (word_edits.connective, "On the other hand, it rains.", "In the other hand, it rains."),
        (word_edits.word_deletion, "I know that it is.", "I know it is."),
        (word_edits.word_insertion, "I think they left.", "I think that they left."),
        (word_edits.word_swap, "He is not here.", "He not is here."),
    ],
)
def test_the_error_it_names(edit: Edit, text: str, expected: str) -> None:
    assert expected in outcomes(edit, text)


def test_a_phrase_is_replaced_as_a_whole() -> None:
    found = outcomes(word_edits.connective, "He came in order to help.")
    assert found == {"He came for help.", "He came in order help."}


def test_punctuation_keeps_words_apart() -> None:
    """What a comma separates is not one phrase."""
    assert not outcomes(word_edits.connective, "At, least we came.")
    assert not outcomes(word_edits.word_swap, "Yes, not, here.")
