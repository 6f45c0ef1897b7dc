"""The shipped translator leaves a sentence that it would spoil as it was, and says why."""

from functools import cache
from typing import Any

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.demo.translation_guard import checked
from fairseq_aggdec.model import Model
from fairseq_aggdec.text.results import Result, Sentence


@cache
def shipped() -> Model:
    return load.shipped("mt")


SPOILT = {
    "The price is 3.5 million euros.": "the number 3.5 would be lost",
    "Call me at +49 30 1234567.": "the number +49 would be lost",
    "My name is Ralf and I am 34 years old.": "the number 34 would be lost",
    "My mother's name is Gudrun.": "'Gudrun' would be lost",
    "Write to help@example.org.": "'help@example.org' would be lost",
    "Visit us on example.com.": "'example.com' would be lost",
    "Ich habe heute keine Zeit.": "it looks German",
    "asdf qwer zxcv uiop": "most of its words are unknown to the model",
    "Chapter 1": "the number 1 would be made up",
    "The meeting is at 3 pm.": "'3 pm' is beyond the model",
    "I love you 😀": "'😀' is unknown to the model",
    "I really like this skirt.": "the output has 'wirklich wirklich'",
    "Tom faked his own death.": "the model is unsure of it",
}
"""{a sentence that the model alone translates wrongly: what is said of it}"""


def test_a_sentence_that_would_be_spoilt_stays_and_the_others_are_translated() -> None:
    results = shipped().translate([f"Where do you live? {source}" for source in SPOILT])
    found = {
        result.sentences[1].source: (result.text, result.sentences[1].note)
        for result in results
    }
    assert found == {
        source: (f"Wo wohnt ihr? {source}", f"{reason}; not translated")
        for source, reason in SPOILT.items()
    }


def test_the_demos_sentences_are_the_models_own_greedy_output_every_one() -> None:
    lines = (SHIPPED["mt"].folder / "sentences.txt").read_text("utf-8").splitlines()
    translated = shipped().translate(lines)
    assert [note for result in translated for note in result.notes] == []
    assert [result.text for result in translated] == [
        result.text for result in shipped().decode(lines, "greedy")
    ]


def test_the_same_checkpoint_as_ones_own_says_what_fairseq_says() -> None:
    folder = SHIPPED["mt"].folder
    options: Any = {"moses_no_escape": True, "moses_no_dash_splits": True}
    own = load(
        folder / "model.pt",
        source_lang="en",
        target_lang="de",
        tokenizer="moses",
        **options,
    )
    text = "The price is 3.5 million euros."
    assert own.translate(text, "greedy") == own.decode(text, "greedy")
    assert (
        own.translate(text).text
        == shipped().decode(text).text
        == "Der Preis ist 35 Millionen Euro."
    )


def test_signs_of_a_word_processor_are_read_as_plain_ones() -> None:
    result = shipped().translate("I don’t know.\nI love you 😀 – really.")
    assert result.text == "Ich weiß es nicht.\nI love you 😀 – really."
    assert result.sentences[1].source == "I love you 😀 – really."


@pytest.mark.parametrize(
    "source, output, note",
    [
        ("It is 3.5 miles to the sea.", "Es sind 3,5 Meilen bis zum Meer.", None),
        ("He has 1,299.50 dollars.", "Er hat 1.299,50 Dollar.", None),
        (
            "He has 1,299 dollars.",
            "Er hat 1,299 Dollar.",
            "the number 1,299 would be lost",
        ),
        (
            "We have 50% more.",
            "Wir haben 50% mehr%.",
            "the sign % would not come out right",
        ),
        (
            "There are two hundred people.",
            "Es sind zwei Leute.",
            "the number 'hundred' would be lost",
        ),
        (
            "There are thirteen people.",
            "Es sind drei Leute.",
            "the number 'thirteen' would be lost",
        ),
        ("See you on Friday.", "Wir sehen uns am Freitag.", None),
        ("See you on Friday.", "Wir sehen uns am Samstag.", "'Friday' would be lost"),
        ("We met Mr. Okonkwo's sister.", "Wir trafen Herrn Okonkwos Schwester.", None),
        ("He is at home.", "", "the output lost words: 0 are left of 4"),
        ("See www.a.example/b.", "Siehe www.a.example/b.", None),
    ],
)
def test_german_forms_of_numbers_and_names_stand_and_others_do_not(
    source: str, output: str, note: str | None
) -> None:
    (sentence,) = checked(
        source, Result(source, output, [Sentence(source, 0, len(source), output)])
    ).sentences
    assert sentence.note == (note and f"{note}; not translated")
    assert sentence.text == (output if note is None else source)
