"""Spelling errors of one word: by sound, by slips of the finger, by doubled and missing letters.

Character noise follows Grundkiewicz et al. 2019 (section 3: insertion, deletion, substitution, transposition of
characters); the sound rules make its substitutions look like those of learners. Each kind takes a lower-case word and
raises `NoPlaceError` where it does not apply.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from random import Random

from experiments.chance import pick

from .inflection import rewrite
from .sentence import NoPlaceError, draw
from .word_tables import VOWELS, table

_FIRST_LETTERS = frozenset("ph wh kn qu sc th ch sh c k".split())
"""sounds that learners also get wrong at the beginning of a word"""
_DOUBLED = r"(?<=(.))\1"
_DOUBLED_OR_VOWELS = rf"{_DOUBLED}|(?<=[aeiou])[aeiou]"
_CAN_BE_DOUBLED = "(?<=[aeiou])[bcdfglmnprstz](?=[aeiouyl]|$)"
_SILENT_E = {
    # becaus
    "(?<=..[^aeiou])e$": "",
    # makeing
    r"(?<=.(.))(?!\1)([^aeioung])ing$": r"\2eing",
    # lovly
    "(?<=.)e(?=(ly|less|ful|ment)$)": "",
}


def _places(pattern: str, word: str) -> list[int]:
    """The positions of a pattern of one letter, never that of the first letter."""
    places = [match.start() for match in re.finditer(pattern, word)]
    return [place for place in places if place > 0]


def _put(
    word: str,
    place: int,
    letters: str,
    replaced: int = 1,
) -> str:
    """The word with other letters in place of those from a place on."""
    return word[:place] + letters + word[place + replaced :]


def by_sound(word: str, rng: Random) -> str:
    """Writes one sound of the word another way (recieve, importent, goverment)."""
    sounds = table("consonants" if rng.random() < 0.12 else "sounds")
    heard = draw([sound for sound in sounds if sound in word], rng)
    # learners mostly get the first letter right
    start = word.find(heard, 0 if heard in _FIRST_LETTERS else 1)
    if start < 0:
        raise NoPlaceError
    again = word.find(heard, start + 1)
    if again > 0 and rng.random() < 0.5:
        start = again
    written = pick(sounds[heard], rng)
    return _put(word, start, written, len(heard))


def silent_e(word: str, rng: Random) -> str:
    """Loses a silent e (becaus, lovly), keeps it before -ing (makeing), or seldom adds one."""
    wrong = rewrite(word, _SILENT_E)
    if wrong is not None:
        return wrong
    if rng.random() < 0.3 and word[-1] not in "aeiouys":
        return word + "e"
    raise NoPlaceError


def vowel(word: str, rng: Random) -> str:
    """Puts another vowel in place of one that is not the first letter."""
    place = draw(_places("[aeiou]", word), rng)
    others = table("vowels")[word[place]]
    return _put(word, place, pick(others, rng))


def delete_letter(word: str, rng: Random) -> str:
    """Leaves out one letter, never the first; a doubled letter or one of two vowels in a row by preference."""
    places = _places(_DOUBLED_OR_VOWELS, word)
    if not places or rng.random() >= 0.5:
        places = [*range(1, len(word))]
    return _put(word, pick(places, rng), "")


def undouble(word: str, rng: Random) -> str:
    """Writes a doubled letter once (diferent)."""
    place = draw(_places(_DOUBLED, word), rng)
    return _put(word, place, "")


def double(word: str, rng: Random) -> str:
    """Doubles a consonant between vowels or at the end (comming, untill)."""
    place = draw(_places(_CAN_BE_DOUBLED, word), rng)
    return _put(word, place, 2 * word[place])


def transpose(word: str, rng: Random) -> str:
    """Exchanges two neighbouring letters, mostly not the first (freind)."""
    start = 0 if rng.random() < 0.05 else 1
    place = pick(range(start, len(word) - 1), rng)
    exchanged = word[place + 1] + word[place]
    return _put(word, place, exchanged, replaced=2)


def keyboard(word: str, rng: Random) -> str:
    """Hits a neighbouring key, but for the first letter."""
    place = pick(range(1, len(word)), rng)
    near = table("keyboard").get(word[place], ())
    return _put(word, place, draw(near, rng))


def insert_letter(word: str, rng: Random) -> str:
    """Adds a letter: a neighbouring one again, or a vowel."""
    first = min(2, len(word) - 1)
    place = first + int(rng.random() * max(1, len(word) - 2))
    letter = word[place - 1] if rng.random() < 0.4 else pick(VOWELS, rng)
    return _put(word, place, letter, replaced=0)


_KINDS: dict[Callable[[str, Random], str], int] = {
    by_sound: 30,
    delete_letter: 18,
    vowel: 16,
    transpose: 12,
    undouble: 10,
    double: 7,
    silent_e: 7,
    insert_letter: 6,
    keyboard: 2,
}
"""{kind of misspelling: its share}"""


def misspell(word: str, rng: Random) -> str:
    """A misspelling of a lower-case word of three letters or more; the word itself if four draws find none."""
    for _ in range(4):
        (kind,) = rng.choices([*_KINDS], [*_KINDS.values()])
        with suppress(NoPlaceError):
            wrong = kind(word, rng)
            if wrong and wrong != word:
                return wrong
    return word
