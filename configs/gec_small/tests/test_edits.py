"""Each edit makes the error it names, one, or none where it finds no place."""

import pytest

from configs.gec_small.tests.essays import outcomes


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        ("article", "He bought the car.", "He bought car."),
        (
            "preposition",
            "They discuss problems.",
            "They discuss about problems.",
        ),
        ("noun_number", "Two cars came.", "Two car came."),
        ("agreement", "She likes it.", "She like it."),
        ("verb_form", "He wants to go.", "He wants to going."),
        ("word_form", "It was a success.", "It was a succeed."),
        ("spelling", "It is because of you.", "It is becuase of you."),
        ("real_word", "It came from Rome.", "It came form Rome."),
        ("comma_deletion", "First, we ate.", "First we ate."),
        (
            "comma_insertion",
            "I said that he left.",
            "I said, that he left.",
        ),
        ("final_mark", "We ate.", "We ate"),
        ("sentence_mark", "We ate; he left.", "We ate, he left."),
        ("apostrophe", "I don't know.", "I dont know."),
        ("capital", "We met in London.", "We met in london."),
        ("spacing", "There is a lot of rain.", "There is alot of rain."),
        ("pronoun", "She likes him.", "She likes his."),
        ("quantifier", "There are many cars.", "There are much cars."),
        ("homophone", "They lost their car.", "They lost there car."),
        (
            "connective",
            "On the other hand, it rains.",
            "In the other hand, it rains.",
        ),
        ("word_deletion", "I know that it is.", "I know it is."),
        ("word_insertion", "I think they left.", "I think that they left."),
        ("word_swap", "He is not here.", "He not is here."),
    ],
)
def test_the_error_it_names(edit: str, text: str, expected: str) -> None:
    assert expected in outcomes(edit, text)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ("article", "Their student came."),  # a determiner is there
        # after a modal nothing agrees
        ("agreement", "You should have time."),
        ("verb_form", "This help."),  # a noun, as the word before it tells
        ("comma_deletion", "It costs 1,000 pounds."),
        ("final_mark", "And then..."),
        # at the end of a word: a quotation mark perhaps
        ("apostrophe", "The students' books."),
        # what a comma separates is not one phrase
        ("connective", "At, least we came."),
    ],
)
def test_what_it_leaves_alone(edit: str, text: str) -> None:
    assert not outcomes(edit, text)
