"""Spelling errors of one word: by sound, by slips of the finger, by doubled and missing letters.

Character noise follows Grundkiewicz et al. 2019 (section 3: insertion, deletion, substitution, transposition of
characters); the sound rules make its substitutions look like those of learners.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from experiments.chance import pick

from .word_tables import VOWELS, table

_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KEYBOARD_NEIGHBOURS: dict[str, str] = {
    letter: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in _KEYBOARD_ROWS
    for i, letter in enumerate(row)
}

_FIRST_LETTER_RULES = frozenset(
    {"ph", "wh", "kn", "qu", "sc", "th", "ch", "sh", "c", "k"}
)

_DOUBLED = "bcdfglmnprstz"


def by_sound(word: str, rng: Random) -> str:
    """Writes one sound of the word another way (recieve, importent, goverment); "" if no rule applies."""
    sounds = table("consonants" if rng.random() < 0.12 else "sounds")
    rules = [rule for rule in sounds.items() if rule[0] in word]
    if not rules:
        return ""
    heard, written = pick(rules, rng)
    # learners mostly get the first letter right
    start = word.find(heard, 0 if heard in _FIRST_LETTER_RULES else 1)
    if start < 0:
        return ""
    again = word.find(heard, start + 1)
    if again > 0 and rng.random() < 0.5:
        start = again
    return word[:start] + pick(written, rng) + word[start + len(heard) :]


def silent_e(word: str, rng: Random) -> str:
    """Loses a final silent e (becaus), or keeps it before -ing or -ed (makeing); "" if the word has none."""
    if word[-1] == "e" and len(word) > 3 and word[-2] not in VOWELS:
        return word[:-1]
    if (
        word.endswith("ing")
        and len(word) > 5
        and word[-4] not in "aeioung"
        and word[-4] != word[-5]
    ):
        return word[:-3] + "eing"
    if word.endswith(("ely", "eless", "eful", "ement")):
        cut = (
            word.rfind("e", 0, -3)
            if word.endswith(("ement", "eless", "eful"))
            else len(word) - 3
        )
        return word[:cut] + word[cut + 1 :] if cut > 0 else ""
    return word + "e" if rng.random() < 0.3 and word[-1] not in "aeiouys" else ""


def vowel(word: str, rng: Random) -> str:
    """Puts another vowel in place of one that is not the first letter; "" if there is none."""
    places = [i for i in range(1, len(word)) if word[i] in VOWELS]
    if not places:
        return ""
    i = pick(places, rng)
    others = {"a": "eeo", "e": "aai", "i": "eea", "o": "auu", "u": "oaa"}[word[i]]
    return word[:i] + others[int(rng.random() * 3)] + word[i + 1 :]


def delete_letter(word: str, rng: Random) -> str:
    """Leaves out one letter, never the first; a doubled letter or one of two vowels in a row by preference."""
    runs = [
        i
        for i in range(1, len(word))
        if word[i] == word[i - 1] or (word[i] in VOWELS and word[i - 1] in VOWELS)
    ]
    i = (
        pick(runs, rng)
        if runs and rng.random() < 0.5
        else 1 + int(rng.random() * (len(word) - 1))
    )
    return word[:i] + word[i + 1 :]


def undouble(word: str, rng: Random) -> str:
    """Writes a doubled letter once (diferent); "" if no letter is doubled."""
    doubled = [i for i in range(1, len(word)) if word[i] == word[i - 1]]
    if not doubled:
        return ""
    i = pick(doubled, rng)
    return word[:i] + word[i + 1 :]


def double(word: str, rng: Random) -> str:
    """Doubles a consonant between vowels or at the end (comming, untill); "" if none can be."""
    places = [
        i
        for i in range(1, len(word))
        if word[i] in _DOUBLED
        and word[i - 1] in VOWELS
        and (i + 1 == len(word) or word[i + 1] in "aeiouyl")
    ]
    if not places:
        return ""
    i = pick(places, rng)
    return word[: i + 1] + word[i:]


def transpose(word: str, rng: Random) -> str:
    """Exchanges two neighbouring letters, mostly not the first (freind)."""
    start = 0 if rng.random() < 0.05 else 1
    i = start + int(rng.random() * (len(word) - 1 - start))
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def keyboard(word: str, rng: Random) -> str:
    """Hits a neighbouring key; "" for a letter that has none."""
    i = 1 + int(rng.random() * (len(word) - 1))
    near = KEYBOARD_NEIGHBOURS.get(word[i], "")
    return word[:i] + pick(near, rng) + word[i + 1 :] if near else ""


def insert_letter(word: str, rng: Random) -> str:
    """Adds a letter: a neighbouring one again, or a vowel."""
    i = min(2, len(word) - 1) + int(rng.random() * max(1, len(word) - 2))
    letter = word[i - 1] if rng.random() < 0.4 else VOWELS[int(rng.random() * 5)]
    return word[:i] + letter + word[i:]


_KINDS: tuple[Callable[[str, Random], str], ...] = (
    *(by_sound,) * 30,
    *(delete_letter,) * 18,
    *(vowel,) * 16,
    *(transpose,) * 12,
    *(undouble,) * 10,
    *(double,) * 7,
    *(silent_e,) * 7,
    *(insert_letter,) * 6,
    *(keyboard,) * 2,
)
"""the kinds of misspelling, each as often as its share of 108"""


def misspell(word: str, rng: Random) -> str:
    """A misspelling of a lower-case word of three letters or more; the word itself if four draws find none."""
    for _ in range(4):
        wrong = pick(_KINDS, rng)(word, rng)
        if wrong and wrong != word:
            return wrong
    return word
