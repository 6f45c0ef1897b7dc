"""Errors in the choice and order of words: confused, missing, superfluous and misplaced ones.

Edits as in `grammar_edits`.
"""

from __future__ import annotations

from functools import cache
from random import Random

from experiments.chance import pick

from .choices import substitute
from .lexicon import Lexicon
from .sentence import Sentence
from .word_tables import table, word_class

_SUBJECTS = frozenset(
    "i you he she it we they the this these there people his their my our your".split()
)


def pronoun(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Confuses pronouns: case, number, relative pronouns, this/these."""
    return substitute(sentence, table("pronouns"), rng)


def quantifier(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Confuses quantifiers: much/many, few/less, another/other."""
    return substitute(sentence, table("quantifiers"), rng)


def homophone(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes another word that sounds (nearly) the same: there/their, then/than, live/leave."""
    return substitute(sentence, table("homophones"), rng)


@cache
def _phrases() -> dict[str, list[list[str]]]:
    """{first word: the conjunctions and phrases that begin with it, the longest first}."""
    phrases: dict[str, list[list[str]]] = {}
    for phrase in sorted(map(str.split, table("connectives")), key=len, reverse=True):
        phrases.setdefault(phrase[0], []).append(phrase)
    return phrases


def connective(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Confuses conjunctions and set phrases (in the other hand)."""
    low, free = sentence.low, sentence.free
    places = []
    for k in range(len(low)):
        for phrase in _phrases().get(low[k], ()):
            length = len(phrase)
            if (
                low[k : k + length] == phrase
                and all(sentence.adjacent(j) for j in range(k, k + length - 1))
                and free[k]
            ):
                places.append((k, length))
                # replacing a shorter phrase within it would leave its rest: because of of
                break
    if not places:
        return False
    k, length = pick(places, rng)
    options = table("connectives")[" ".join(low[k : k + length])]
    sentence.replace(k, pick(options, rng))
    for j in range(k + length - 1, k, -1):
        sentence.delete(j)
    return True


def word_deletion(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Leaves out a function word."""
    low = sentence.low
    places = [
        k
        for k in range(1, len(low))
        if low[k] in word_class("omissible") and sentence.adjacent(k)
    ]
    if not places:
        return False
    sentence.delete(pick(places, rng))
    return True


def word_insertion(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Repeats a word, or adds a function word that fits the next word's class."""
    low = sentence.low
    places = [k for k in range(1, len(low)) if sentence.adjacent(k - 1)]
    if not places:
        return False
    k = pick(places, rng)
    word = low[k]
    if rng.random() < 0.15:
        added = low[k - 1]
    elif word in _SUBJECTS:
        added = pick(table("classes")["added before a subject"], rng)
    elif word in lexicon.families.adverbs or word in lexicon.families.adjectives:
        added = pick(table("classes")["added before an adjective"], rng)
    elif word in lexicon.nouns and low[k - 1] not in word_class("determiners"):
        added = pick(table("classes")["added before a noun"], rng)
    elif word in lexicon.families.verbs:
        added = pick(table("classes")["added before a verb"], rng)
    else:
        return False
    sentence.insert_before(k, added)
    return True


def word_swap(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Exchanges two neighbouring words, adverbs by preference."""
    low = sentence.low
    places = [
        k
        for k in range(1, len(low) - 1)
        if sentence.adjacent(k)
        and sentence.word(k).islower()
        and sentence.word(k + 1).islower()
    ]
    if not places:
        return False
    adverbs = word_class("movable")
    movable = [
        k
        for k in places
        if low[k] in adverbs or low[k + 1] in adverbs or low[k + 1].endswith("ly")
    ]
    if not movable and rng.random() < 0.8:
        return False
    k = pick(movable or places, rng)
    if low[k] == low[k + 1] or not word_class("determiners").isdisjoint(low[k : k + 2]):
        return False
    first, second = sentence.word(k), sentence.word(k + 1)
    sentence.pieces[sentence.words[k]], sentence.pieces[sentence.words[k + 1]] = (
        second,
        first,
    )
    sentence.free[k] = sentence.free[k + 1] = False
    return True
