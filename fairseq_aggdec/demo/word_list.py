"""Which words are English: the list of the shipped corrector, which configs/shared/measuring/words.py makes."""

import gzip
import re
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

_LIST = Path(__file__).with_name("gec") / "words.txt.gz"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SIGNS = re.compile(r"[\d_/\\@<>=]|\w\.\w")
"""of code, versions and addresses"""
_SHORT_FORM = re.compile(r"'(?:s|m|d|ll|re|ve)?$")
_ENDING = re.compile(r"(?<=...)(?:e?s|e?d|ing|e?r|e?rs|ly|e?st)$")
_ENGLISH_ALONE = frozenset(
    "i the of and is are my you he she it they this that with have has dont".split()
)
"""frequent words that few languages share: they make up for misspelt ones"""


def words(text: str) -> list[str]:
    """The words of a text, apostrophes as on a keyboard; the parts of `well-known` are two."""
    return [word.replace("’", "'") for word in _WORD.findall(text)]


@cache
def _listed() -> frozenset[str]:
    with gzip.open(_LIST, "rt", encoding="ascii") as file:
        return frozenset(file.read().split("\n"))


def is_listed(word: str) -> bool:
    """Whether a word is in the list, perhaps in small letters; 's and the like aside."""
    stem = _SHORT_FORM.sub("", word)
    return stem in _listed() or stem.lower() in _listed()


def is_common(word: str) -> bool:
    """Whether a word, or what it may be a form of ("buyed"), is in the list without a capital."""
    stem = _SHORT_FORM.sub("", word.lower())
    return stem in _listed() or _ENDING.sub("", stem) in _listed()


def is_name(word: str) -> bool:
    """Whether the list has a word with a capital only: English, Monday, Berlin."""
    stem = _SHORT_FORM.sub("", word.lower())
    return stem not in _listed() and stem.capitalize() in _listed()


def is_near(old: str, new: str, ratio: float) -> bool:
    """Whether a word may be a misspelling of another: the same letters, or by difflib's ratio; capitals aside."""
    old = old.lower()
    new = new.lower()
    return (
        sorted(old) == sorted(new)
        or SequenceMatcher(None, old, new, autojunk=False).ratio() >= ratio
    )


def foreign(sentence: str) -> str | None:
    """Say that most words of a sentence are none of English, names aside; None if there are too few to tell.

    A word with a capital can be a name, except the first.
    """
    prose = " ".join(chunk for chunk in sentence.split() if not _SIGNS.search(chunk))
    plain = [
        word
        for place, word in enumerate(words(prose))
        if place == 0 or not word[0].isupper()
    ]
    unknown = sum(not is_listed(word) and not is_name(word) for word in plain)
    if len(plain) < 4 or 2 * unknown < len(plain) + sum(
        word.lower() in _ENGLISH_ALONE for word in plain
    ):
        return None
    return f"not English: {unknown} of {len(plain)} words are in no list of its words; left as it was"
