"""What the corrector reads of a line, and its answer in the writer's own characters."""

import unicodedata
from random import Random

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.text.characters import PUNCTUATION, READ, plain
from fairseq_aggdec.text.line import WrittenLine
from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer


@pytest.mark.parametrize(
    "line, tokens",
    [
        ("She doesn't pay $20.50 (or 5 %).", "She doesn 't pay $ 20.50 ( or 5 % ) ."),
        ("“Don’t”, she said – ‘no’…", "\" Don 't \" , she said - ' no ' ..."),
        ("1990–2000", "1990-2000"),
        ("one—two", "one - two"),
        ("10\u00a0km co\u00adoperate", "10 km cooperate"),
        ("Don`t say it´s.", "Don 't say it 's ."),
        ("[3] {x} 20€ £5", "( 3 ) ( x ) 20 $ $ 5"),
        ("Café in Malmö, cafe\u0301.", "Cafe in Malmo , cafe ."),
        ("In Москва. (C#, a_b) me@x.org", "In X . ( C , X ) X"),
        ("#tag @tom Straße", "X X X"),
        ("• One ♥ two* 😀!", "One X two !"),
        ("\x07 😀", ""),
        ("  ", ""),
    ],
)
def test_the_model_reads_ascii(line: str, tokens: str) -> None:
    assert WrittenLine(line).tokens == tokens


@pytest.mark.parametrize(
    "line, answer, output",
    [
        # what the model keeps is as it was, with the spaces between
        (
            "He said , “ I has two ” .",
            'He said , " I have two " .',
            "He said , “ I have two ” .",
        ),
        (
            "On 12/03/2021  it are ;)",
            "On 12 / 03 / 2021 it is ; )",
            "On 12/03/2021  it is ;)",
        ),
        ("The student’s book are", "The student 's book is", "The student’s book is"),
        (
            "in 1990–2000, one—two…",
            "in 1990-2000 , one - two ...",
            "in 1990–2000, one—two…",
        ),
        (
            "it are 10\u00a0km co\u00adop",
            "it is 10 km coop",
            "it is 10\u00a0km co\u00adop",
        ),
        # what it changes is the model's
        ("The brothers’ are", "The brothers are", "The brothers are"),
        ("Don`t go.", "Don 't go .", "Don't go."),
        # what it cannot read stays, whatever it answers
        ("He live in Москва.", "He lives in X .", "He lives in Москва."),
        ("The Москва is.", "The Indian Indian is .", "The Москва is."),
        ("The Москва is.", "The X X is .", "The Москва is."),
        ("see [page 3] now", "see page 3 ( now", "see [page 3] now"),
        ("The café are big", "The cafes is big", "The café are big"),
        ("Москва", ".", "Москва"),
        ("Москва и Париж", "X X X X .", "Москва и Париж."),
        # symbols stay between the words that stood there
        ("• I has it*, too 😀", "I have it , too .", "• I have it*, too 😀."),
        ("**bold texts**", "bold text", "**bold text**"),
        ("one two* three", "a b c", "a b* c"),
        ("😀", "It is .", "😀"),
        ("", ".", ""),
        # what is new is left to the detokeniser
        (
            "She have two brother",
            "She has two brothers , really .",
            "She has two brothers, really.",
        ),
    ],
)
def test_the_writers_characters_come_back(line: str, answer: str, output: str) -> None:
    assert WrittenLine(line).restored(answer) == output


ALPHABET = (
    "abcXYZ019 .,'\"()-!?:;&$%/+   “”‘’–—…\u00a0\u2028\u200b\u00ad[]{}€£¥éőßﬁe\u0301#@*_=~^|\\<>´`½²™МЖ你हि"
    "😀👍🏽\u200d\ufe0f•→\x07\t\ufffc\ufeff"
)
ANSWERS = "the a X ( ) $ . , ' 's don 't \" - ... cafe <unk> &amp; --".split()


def _unreadable(text: str) -> list[str]:
    return [
        c
        for c in text
        if not c.isspace() and c not in PUNCTUATION and plain(c) != c and c not in "<>"
    ]


@pytest.mark.parametrize("seed", range(5))
def test_no_unreadable_character_is_lost_or_doubled_whatever_the_model_answers(
    seed: int,
) -> None:
    rng = Random(seed)
    for _ in range(200):
        line = "".join(rng.choices(ALPHABET, k=rng.randint(0, 25)))
        written = WrittenLine(line)
        tokens = written.tokens.split()
        assert set(written.tokens) <= READ
        answer = [token for token in tokens if rng.random() < 0.85]
        for _ in range(rng.randint(0, 3)):
            answer.insert(rng.randint(0, len(answer)), rng.choice(ANSWERS))
        # a mistyped apostrophe is not among them, as it is punctuation
        assert _unreadable(written.restored(" ".join(answer))) == _unreadable(line), (
            line,
            answer,
        )


def test_every_letter_with_an_accent_is_read_without_it_or_its_word_is_kept() -> None:
    for letter in filter(str.isalpha, map(chr, range(0xC0, 0x250))):
        line = f"the {letter}b"
        assert WrittenLine(line).restored("the other") == line, unicodedata.name(letter)


def test_nobody_gets_the_characters_of_another_line() -> None:
    tokenizer = AsWrittenTokenizer()
    tokenizer.encode("One €.")
    with pytest.raises(
        AggdecError,
        match=r"--tokenizer as_written: only aggdec decode and fairseq-interactive with",
    ):
        tokenizer.decode("One $ .")
