"""Grammatical errors: each edit makes the error it names, one, or none where it finds no place."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data import grammar_edits
from fairseq_aggdec.data.corruption import Edit
from tests.data.essays import outcomes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (grammar_edits.article, "He bought the car.", "He bought car."),
        (grammar_edits.article, "He saw a dog in the park.", "He saw the dog in the park."),
        (grammar_edits.preposition, "We live in London.", "We live at London."),
        (grammar_edits.preposition, "They discuss problems.", "They discuss about problems."),
        (grammar_edits.noun_number, "Two cars came.", "Two car came."),
        (grammar_edits.noun_number, "He gave advice.", "He gave advices."),
        (grammar_edits.agreement, "He has time.", "He have time."),
        (grammar_edits.agreement, "She likes it.", "She like it."),
        (grammar_edits.verb_form, "He wants to go.", "He wants to going."),
        (grammar_edits.verb_form, "He bought it.", "He buyed it."),
        (grammar_edits.verb_form, "We can help.", "We can to help."),
        (grammar_edits.word_form, "He ran quickly.", "He ran quick."),
        (grammar_edits.word_form, "It was a success.", "It was a succeed."),
    ],
)
def test_the_error_it_names(edit: Edit, text: str, expected: str) -> None:
    assert expected in outcomes(edit, text)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (grammar_edits.article, "Their student came."),  # a determiner is there
        (grammar_edits.article, "We met Student."),  # a name
        (grammar_edits.agreement, "You should have time."),  # after a modal nothing agrees
        (grammar_edits.agreement, "It is time to have lunch."[11:]),
        (grammar_edits.verb_form, "This help."),  # a noun, as the word before it tells
        (grammar_edits.noun_number, "He ate quickly."),
    ],
)
def test_what_is_right_in_any_form_is_left_alone(edit: Edit, text: str) -> None:
    assert not outcomes(edit, text)


def test_the_form_of_the_article_follows_the_next_word() -> None:
    """A confused article is still one that sounds possible: errors of meaning, not of spelling."""
    assert "He ate an apple." in outcomes(grammar_edits.article, "He ate the apple.")
    assert "He ate a apple." not in outcomes(grammar_edits.article, "He ate the apple.")
    assert "He bought a car." in outcomes(grammar_edits.article, "He bought the car.")
