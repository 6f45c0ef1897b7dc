"""Inflections of English words by rules of spelling."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from .word_tables import table, word_class

_ENDINGS = {
    "s": {
        "(?<=[sxz])$|(?<=[cs]h)$|(?<=^[gd]o)$": "es",
        "(?<=[^aeiou])y$": "ies",
        "$": "s",
    },
    "ing": {"ie$": "ying", "(?<=.[^eoy])e$": "ing"},
    "ed": {"e$": "ed", "(?<=[^aeiou])y$": "ied"},
    "er": {"y$": "ier", "e$": "er"},
    "est": {"y$": "iest", "e$": "est"},
    "ly": {"(?<=...)y$": "ily", "le$": "ly", "ic$": "ically", "$": "ly"},
}
"""{ending: {end of a word: what it becomes with the ending}}; the first that fits counts"""


class VerbForms(NamedTuple):
    """The five forms of one verb."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


def rewrite(word: str, rules: Mapping[str, str]) -> str | None:
    """The word changed by the first of {pattern: replacement} that occurs in it; None where none does."""
    for pattern, replacement in rules.items():
        changed, count = re.subn(pattern, replacement, word)
        if count:
            return changed
    return None


def inflect(word: str, ending: str) -> str:
    """The word with a regular ending: -s, -ing and -ed of a verb, -s of a noun, -er, -est and -ly of an adjective."""
    changed = rewrite(word, _ENDINGS[ending])
    if changed is not None:
        return changed
    # stop, begin: the last consonant doubles
    doubles = word in word_class("doubling") or re.fullmatch(
        "[^aeiouy]+[aeiou][^aeiouwxy]", word
    )
    return word + (word[-1] if doubles else "") + ending


def verb_forms(base: str) -> VerbForms:
    """The forms of a verb, irregular ones included."""
    regular = inflect(base, "ed")
    past, participle = table("irregular_verbs").get(base, (regular, regular))
    return VerbForms(base, inflect(base, "s"), past, participle, inflect(base, "ing"))


def plural(noun: str) -> str:
    """The plural of a noun, irregular ones included."""
    return table("irregular_nouns").get(noun, (inflect(noun, "s"),))[0]
