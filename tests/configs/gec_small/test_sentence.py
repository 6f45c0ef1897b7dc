"""A sentence that is edited word by word."""

from __future__ import annotations

import pytest

from configs.gec_small.errors.sentence import Sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 3.5 km, isn’t it?", ["it's", "km", "isn’t", "it"]),
        ("A well-known naïve man", ["a", "well", "known", "naïve", "man"]),
        ("«12» …", []),
    ],
)
def test_words_and_what_stands_between_them(text: str, words: list[str]) -> None:
    sentence = Sentence(text)
    assert sentence.low == words
    assert sentence.text() == text


@pytest.mark.parametrize(
    ("edit", "text", "k", "expected"),
    [
        ("replace", "The man.", 0, "An man."),
        ("replace", "NATO met.", 0, "AN met."),
        ("replace", "So I came.", 1, "So an came."),  # the capital of "I" means nothing
        ("insert_before", "Man came.", 0, "An man came."),
        ("insert_before", "A man came.", 1, "A an man came."),
        ("insert_before", "UN came.", 0, "an UN came."),
        ("delete", "The man came.", 0, "Man came."),  # the next word takes over the capital
        ("delete", "A man came", 2, "A man"),  # no space is left at the end
        ("delete", "a man, too.", 1, "a, too."),
    ],
)
def test_one_edit(edit: str, text: str, k: int, expected: str) -> None:
    sentence = Sentence(text)
    word = [] if edit == "delete" else ["an"]
    getattr(sentence, edit)(k, *word)
    assert sentence.text() == expected
    assert not sentence.free[k]


def test_positions_stay_valid_from_edit_to_edit() -> None:
    sentence = Sentence("The man saw a dog.")
    sentence.delete(0)
    sentence.insert_before(4, "big")
    sentence.replace(2, "seen")
    assert sentence.text() == "Man seen a big dog."
    assert sentence.low == ["the", "man", "saw", "a", "dog"]  # as they were
