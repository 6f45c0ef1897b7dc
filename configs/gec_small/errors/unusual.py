"""Puts characters that clean prose does not have into training sentences: a corrector must not change them."""

import re
from random import Random

_ALPHABETS = """
абвгдежзиклмнопрстуфхцчшыя
αβγδεζηθικλμνξοπρστυφχψω
中文日本語漢字山川人大小学生東京
áéíóúñçãêüåøßłőšž
""".split()
_MIXED = "C# F# a_b x=1 file_name #{} @{} {}@mail.org <{}> *{}* {}*".split()
_SYMBOLS = "• → ← ★ ♥ ✓ ☺ 😀 👍 🎉 ❤️ © ™ * # = ~ | §".split()
_TYPOGRAPHIC = {"'": "’", " - ": " – ", "...": "…"}


def with_unusual(sentence: str, rng: Random) -> str:
    """The sentence with one or two characters or words that a corrector's dictionary does not have.

    Args:
        sentence: clean prose with single spaces between words.
        rng: the random generator.
    """
    if rng.random() < 0.5:
        sentence = typographic(sentence)
    words = sentence.split(" ")
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice((_foreign_word, _symbol, _brackets, _currency))(words, rng)
    return " ".join(words)


def typographic(sentence: str) -> str:
    """The sentence in a word processor's characters: curly quotes, dashes, the ellipsis."""
    for typed, made in _TYPOGRAPHIC.items():
        sentence = sentence.replace(typed, made)
    return re.sub('"([^"]*)"', "“\\1”", sentence)


def _foreign_word(words: list[str], rng: Random) -> None:
    """Writes letters of another script, a tag or an identifier, in place of a word with a capital or after any word."""
    names = [
        i for i, word in enumerate(words) if i and word.isalpha() and word.istitle()
    ]
    if rng.random() < 0.7:
        letters = rng.choices(rng.choice(_ALPHABETS), k=rng.randint(2, 8))
        word = "".join(letters).capitalize()
    else:
        word = rng.choice(_MIXED).format(rng.choice(["word", "name", "tom", "news"]))
    if names:
        words[rng.choice(names)] = word
    else:
        words.insert(rng.randint(1, len(words)), f"({word})")


def _symbol(words: list[str], rng: Random) -> None:
    """Adds a symbol before the sentence, after it, or between two words."""
    place = rng.choice((0, len(words), rng.randint(0, len(words))))
    words.insert(place, rng.choice(_SYMBOLS))


def _brackets(words: list[str], rng: Random) -> None:
    """Adds a reference after a word, or brackets around some words."""
    first = rng.randrange(len(words))
    if rng.random() < 0.5:
        words.insert(first + 1, f"[{rng.randint(1, 99)}]")
        return
    last = min(first + rng.randint(0, 3), len(words) - 1)
    opening, closing = rng.choice(("[]", "{}"))
    words[first] = opening + words[first]
    words[last] += closing


def _currency(words: list[str], rng: Random) -> None:
    """Adds a currency to a number, or, where there is none, a sum in parentheses."""
    sign = rng.choice("€£¥")
    amounts = [i for i, word in enumerate(words) if word.isdecimal()]
    if amounts:
        place = rng.choice(amounts)
        amount = words[place]
        written = (f"{amount} {sign}", f"{amount}{sign}", f"{sign}{amount}")
        words[place] = rng.choice(written)
    else:
        words.insert(rng.randint(1, len(words)), f"({sign}{rng.randint(1, 500)})")
