"""A sentence that is edited word by word."""

from __future__ import annotations

import pytest

from fairseq_aggdec.data.sentence import Sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 3.5 km, isn’t it?", ["it's", "km", "isn’t", "it"]),
        ("A well-known naïve man", ["a", "well", "known", "naïve", "man"]),
        ("«12» …", []),
        ("", []),
    ],
)
def test_words_and_what_stands_between_them(text: str, words: list[str]) -> None:
    sentence = Sentence(text)
    assert sentence.low == words
    assert [sentence.word(k).lower() for k in range(len(words))] == words
    assert sentence.text() == text


@pytest.mark.parametrize(
    ("text", "k", "word", "expected"),
    [
        ("The man.", 0, "a", "A man."),
        ("The man.", 1, "men", "The men."),
        ("NATO met.", 0, "form", "FORM met."),
        ("I came.", 0, "me", "Me came."),
        ("So I came.", 1, "me", "So me came."),  # the capital of "I" means nothing
        ("Go home.", 1, "to home", "Go to home."),
    ],
)
def test_replace(text: str, k: int, word: str, expected: str) -> None:
    sentence = Sentence(text)
    sentence.replace(k, word)
    assert sentence.text() == expected
    assert sentence.free == [number != k for number in range(len(sentence.words))]


@pytest.mark.parametrize(
    ("text", "k", "expected"),
    [("Man came.", 0, "The man came."), ("A man came.", 1, "A the man came."), ("UN came.", 0, "the UN came.")],
)
def test_insert_before(text: str, k: int, expected: str) -> None:
    sentence = Sentence(text)
    sentence.insert_before(k, "the")
    assert sentence.text() == expected
    assert not sentence.free[k]


@pytest.mark.parametrize(
    ("text", "k", "expected"),
    [
        ("The man came.", 0, "Man came."),  # the next word takes over the capital
        ("A man came.", 1, "A came."),
        ("A man came", 2, "A man"),  # no space is left at the end
        ("a man, too.", 1, "a, too."),
    ],
)
def test_delete(text: str, k: int, expected: str) -> None:
    sentence = Sentence(text)
    sentence.delete(k)
    assert sentence.text() == expected
    assert not sentence.free[k]


def test_positions_stay_valid_from_edit_to_edit() -> None:
    sentence = Sentence("The man saw a dog.")
    sentence.delete(0)
    sentence.insert_before(4, "big")
    sentence.replace(2, "seen")
    assert sentence.text() == "Man seen a big dog."
    assert sentence.low == ["the", "man", "saw", "a", "dog"]  # as they were
