"""Each edit makes the error it names, one, or none where it finds no place."""

from __future__ import annotations

import pytest

from configs.gec_small.errors import grammar_edits, surface_edits, word_edits
from configs.gec_small.errors.corruption import Edit
from configs.gec_small.tests.essays import outcomes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (grammar_edits.article, "He bought the car.", "He bought car."),
        (
            grammar_edits.preposition,
            "They discuss problems.",
            "They discuss about problems.",
        ),
        (grammar_edits.noun_number, "Two cars came.", "Two car came."),
        (grammar_edits.agreement, "She likes it.", "She like it."),
        (grammar_edits.verb_form, "He wants to go.", "He wants to going."),
        (grammar_edits.word_form, "It was a success.", "It was a succeed."),
        (surface_edits.spelling, "It is because of you.", "It is becuase of you."),
        (surface_edits.real_word, "It came from Rome.", "It came form Rome."),
        (surface_edits.comma_deletion, "First, we ate.", "First we ate."),
        (
            surface_edits.comma_insertion,
            "I said that he left.",
            "I said, that he left.",
        ),
        (surface_edits.final_mark, "We ate.", "We ate"),
        (surface_edits.sentence_mark, "We ate; he left.", "We ate, he left."),
        (surface_edits.apostrophe, "I don't know.", "I dont know."),
        (surface_edits.capital, "We met in London.", "We met in london."),
        (surface_edits.spacing, "There is a lot of rain.", "There is alot of rain."),
        (word_edits.pronoun, "She likes him.", "She likes his."),
        (word_edits.quantifier, "There are many cars.", "There are much cars."),
        (word_edits.homophone, "They lost their car.", "They lost there car."),
        (
            word_edits.connective,
            "On the other hand, it rains.",
            "In the other hand, it rains.",
        ),
        (word_edits.word_deletion, "I know that it is.", "I know it is."),
        (word_edits.word_insertion, "I think they left.", "I think that they left."),
        (word_edits.word_swap, "He is not here.", "He not is here."),
    ],
)
def test_the_error_it_names(edit: Edit, text: str, expected: str) -> None:
    assert expected in outcomes(edit, text)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (grammar_edits.article, "Their student came."),  # a determiner is there
        # after a modal nothing agrees
        (grammar_edits.agreement, "You should have time."),
        (grammar_edits.verb_form, "This help."),  # a noun, as the word before it tells
        (surface_edits.comma_deletion, "It costs 1,000 pounds."),
        (surface_edits.final_mark, "And then..."),
        # at the end of a word: a quotation mark perhaps
        (surface_edits.apostrophe, "The students' books."),
        # what a comma separates is not one phrase
        (word_edits.connective, "At, least we came."),
    ],
)
def test_what_it_leaves_alone(edit: Edit, text: str) -> None:
    assert not outcomes(edit, text)
