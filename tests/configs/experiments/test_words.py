"""Tokens of languages, and running text out of tokens."""

import pytest
from experiments.ptb import detokenise
from experiments.words import split_words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # from UA-GEC's M2 file
        ("Щось ми сьогодні не встигаємо до дев'ятої привести", "Щось ми сьогодні не встигаємо до дев'ятої привести"),
        ("З’явився лоток (1) з бетону, куди прилітає усе", "З’явився лоток ( 1 ) з бетону , куди прилітає усе"),
        ("триповерхова будівля 1890-х рр. у стилі", "триповерхова будівля 1890-х рр . у стилі"),
        ("сторінка https://www.penguin.co.uk/b…/182131/?", "сторінка https://www.penguin.co.uk/b…/182131/?"),
        ("у ІринкаАгафонова #Світлана 13-14 %, 18:10", "у ІринкаАгафонова # Світлана 13 - 14 % , 18 : 10"),
    ],
)
def test_words_and_marks(text: str, tokens: str) -> None:
    assert split_words(text) == tokens
    assert split_words(tokens).replace(" ", "") == text.replace(" ", "")  # nothing is lost


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("I do n't know . ", "I don't know."),
        ("It called `` ballast water '' .", 'It called "ballast water".'),
        ("Trees ( and so on ) are good !", "Trees (and so on) are good!"),
        ("He / she is here : there .", "He/she is here: there."),
    ],
)
def test_running_text(tokens: str, text: str) -> None:
    assert detokenise(tokens) == text
