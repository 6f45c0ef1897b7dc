"""Errors of writing: spelling, punctuation, capitals, spaces. Edits as in `grammar_edits`."""

from __future__ import annotations

from random import Random

from experiments.chance import pick

from .lexicon import Lexicon
from .sentence import Sentence
from .spelling import misspell
from .word_tables import table, word_class

_CLOSING = frozenset(".!?")
_COMMA_BEFORE = frozenset(
    "and or that because when if which who but to as so for with in where than".split()
)
TABLE_SHARE = 0.35
"""share of spelling errors from the table of typical misspellings, where it has a word of the sentence"""
_DRAWS = 3
"""how many words are drawn, of which the rarest is misspelt: otherwise nearly all misspellings would be of a few
hundred frequent words"""


def spelling(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Misspells a word, rare ones more often: as in the table of typical misspellings, or by one slip, rarely two."""
    low, free, pieces, words = (
        sentence.low,
        sentence.free,
        sentence.pieces,
        sentence.words,
    )
    known = lexicon.words

    def hardest(places: list[int]) -> int:
        drawn = [pick(places, rng) for _ in range(_DRAWS)]
        return max(drawn, key=lambda k: (-known.get(low[k], 0), len(low[k])))

    if rng.random() < TABLE_SHARE:
        # short words are frequent, but seldom misspelt
        shortest = 4 if rng.random() < 0.75 else 2
        typical = table("misspellings")
        places = [
            k
            for k, word in enumerate(low)
            if word in typical and free[k] and len(word) >= shortest
        ]
        if places:
            k = hardest(places)
            options = typical[low[k]]
            sentence.replace(k, pick(options, rng))
            return True
    places = [
        k
        for k, word in enumerate(low)
        # a misspelt name, or a word that the corpus hardly has, cannot be restored
        if len(word) > 3
        and free[k]
        and word.isalpha()
        and word.isascii()
        and (word in known or not known)
        and (k == 0 or pieces[words[k]].islower())
    ]
    if not places:
        return False
    k = hardest(places)
    wrong = misspell(low[k], rng)
    if wrong in known and rng.random() < 0.7:
        wrong = misspell(low[k], rng)
    if len(wrong) > 5 and rng.random() < 0.15:
        wrong = misspell(wrong, rng)
    if wrong == low[k]:
        return False
    sentence.replace(k, wrong)
    return True


def real_word(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes a similar word of the vocabulary instead: a confusion set of Grundkiewicz et al. 2019."""
    neighbours, free = lexicon.neighbours, sentence.free
    places = [
        k
        for k, word in enumerate(sentence.low)
        if word in neighbours and free[k] and (k == 0 or sentence.word(k).islower())
    ]
    if not places:
        return False
    k = pick(places, rng)
    options = neighbours[sentence.low[k]]
    # the list begins with the most similar words, which are preferred
    sentence.replace(k, options[int(rng.random() ** 2 * len(options))])
    return True


def _final_mark(sentence: Sentence) -> int:
    """The position of the sentence's final mark, if it is one of . ! ?, else -1."""
    last = len(sentence.pieces) - 1
    return (
        last
        if last > 0
        and sentence.pieces[last] in _CLOSING
        and sentence.pieces[last - 1] not in _CLOSING
        else -1
    )


def comma_deletion(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Leaves out a comma."""
    pieces = sentence.pieces
    places = [
        i
        for i in range(1, len(pieces) - 1)
        if pieces[i] == "," and pieces[i + 1] == " "
    ]
    if not places:
        return False
    i = pick(places, rng)
    pieces[i] = ""
    if pieces[i - 1] == " ":
        pieces[i - 1] = ""
    return True


def comma_insertion(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Adds a comma, before a conjunction by preference."""
    places = [k for k in range(1, len(sentence.low)) if sentence.adjacent(k - 1)]
    if not places:
        return False
    likely = [k for k in places if sentence.low[k] in _COMMA_BEFORE]
    k = pick(likely or places, rng)
    before = sentence.words[k - 1]
    sentence.pieces[before] += ","
    sentence.free[k - 1] = False
    return True


def final_mark(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Leaves out the final mark, or writes a period for a question mark, or two periods."""
    last = _final_mark(sentence)
    if last < 0:
        return False
    if sentence.pieces[last] == "?" and rng.random() < 0.5:
        sentence.pieces[last] = "."
    elif rng.random() < 0.1:
        sentence.pieces[last] = ".."
    else:
        sentence.pieces[last] = ""
        if sentence.pieces[last - 1] == " ":
            sentence.pieces[last - 1] = ""
    return True


def apostrophe(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Leaves out a word's apostrophe (dont, students)."""
    places = [
        k
        for k, word in enumerate(sentence.low)
        if ("'" in word or "’" in word) and sentence.free[k]
    ]
    if not places:
        return False
    k = pick(places, rng)
    word = sentence.word(k)
    sentence.pieces[sentence.words[k]] = word.replace("'", "").replace("’", "")
    sentence.free[k] = False
    return True


def sentence_mark(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes a comma for a semicolon or colon, or leaves it out."""
    pieces = sentence.pieces
    places = [
        i
        for i in range(1, len(pieces) - 1)
        if pieces[i] in ";:" and pieces[i] and pieces[i + 1] == " "
    ]
    if not places:
        return False
    i = pick(places, rng)
    pieces[i] = "," if rng.random() < 0.7 else ""
    return True


def capital(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes a small letter at the start of the sentence, in "I" or in a name; seldom a capital where none belongs."""
    low, free, words, pieces = (
        sentence.low,
        sentence.free,
        sentence.words,
        sentence.pieces,
    )
    capitals = [
        k
        for k in range(len(low))
        if pieces[words[k]] and not pieces[words[k]].islower() and free[k]
    ]
    if capitals and rng.random() < 0.93:
        # the start of the sentence is missed more often than a name
        k = capitals[0] if rng.random() < 0.5 else pick(capitals, rng)
        word = pieces[words[k]]
        pieces[words[k]] = word[0].lower() + word[1:]
        free[k] = k == 0 and len(word) > 3
        return True
    places = [
        k
        for k in range(1, len(low))
        if low[k] in lexicon.nouns and free[k] and pieces[words[k]].islower()
    ]
    if not places:
        return False
    k = pick(places, rng)
    word = pieces[words[k]]
    pieces[words[k]] = word[0].upper() + word[1:]
    free[k] = False
    return True


def spacing(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Joins words (alot, 12years), splits a compound (some times), or drops a hyphen or the space after a comma."""
    low, free, pieces, words = (
        sentence.low,
        sentence.free,
        sentence.pieces,
        sentence.words,
    )
    kind = rng.random()
    if kind < 0.3:
        places = [
            k
            for k, word in enumerate(low)
            if word in table("split_compounds") and free[k]
        ]
        if places:
            k = pick(places, rng)
            sentence.replace(k, table("split_compounds")[low[k]][0])
            return True
    if kind < 0.5:
        gaps = [
            i
            for i in range(1, len(pieces) - 1)
            if pieces[i] == " "
            and (pieces[i - 1] in (",", ";") or pieces[i - 1][:1].isdigit())
            and pieces[i + 1][:1].isalpha()
        ]
        if gaps:
            pieces[pick(gaps, rng)] = ""
            return True
    if kind < 0.65:
        hyphens = [
            i
            for i in range(1, len(pieces) - 1)
            if pieces[i] == "-" and pieces[i - 1].isalpha() and pieces[i + 1].isalpha()
        ]
        if hyphens:
            pieces[pick(hyphens, rng)] = " " if rng.random() < 0.7 else ""
            return True
    joinable = word_class("joinable")
    places = [
        k
        for k in range(len(low) - 1)
        if f"{low[k]} {low[k + 1]}" in joinable and sentence.adjacent(k)
    ]
    if not places or rng.random() < 0.2:
        if rng.random() < 0.5:
            return False
        places = [
            k
            for k in range(len(low) - 1)
            if sentence.adjacent(k) and len(low[k]) + len(low[k + 1]) < 11
        ]
        places = [k for k in places if low[k] in lexicon.words or not lexicon.words]
    if not places:
        return False
    k = pick(places, rng)
    pieces[words[k] + 1] = ""
    free[k] = free[k + 1] = False
    return True
