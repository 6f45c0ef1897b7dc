"""Errors of writing: spelling, punctuation, capitals, spaces. Edits as in `grammar_edits`."""

import re

from .sentence import NoPlaceError, Sentence, capitalised
from .spelling import misspell
from .word_tables import table, word_class

_CLOSING = frozenset(".!?")
_TABLE_SHARE = 0.35
"""share of spelling errors from the table of typical misspellings, where it has a word of the sentence"""
_DRAWS = 3
"""how many words are drawn, of which the rarest is misspelt: otherwise nearly all misspellings would be of a few
hundred frequent words"""


def spelling(sentence: Sentence) -> None:
    """Misspells a word, rare ones more often: as in the table of typical misspellings, or by one slip, rarely two."""
    low = sentence.low
    known = sentence.lexicon.words

    def hardest(places: list[int]) -> int:
        drawn = [sentence.draw(places) for _ in range(_DRAWS)]
        return max(
            drawn, key=lambda place: (-known.get(low[place], 0), len(low[place]))
        )

    if sentence.chance(_TABLE_SHARE):
        # short words are frequent, but seldom misspelt
        shortest = 4 if sentence.chance(0.75) else 2
        typical = table("misspellings")
        places = [
            place for place in sentence.places(typical) if len(low[place]) >= shortest
        ]
        if places:
            place = hardest(places)
            sentence.replace(place, sentence.draw(typical[low[place]]))
            return

    # a misspelt name, or a word that the corpus hardly has, cannot be restored
    common = sentence.common(known or low)
    place = hardest(
        [place for place in common if re.fullmatch("[a-z]{4,}", low[place])]
    )
    wrong = misspell(low[place], sentence.rng)
    if wrong in known and sentence.chance(0.7):
        wrong = misspell(low[place], sentence.rng)
    if len(wrong) > 5 and sentence.chance(0.15):
        wrong = misspell(wrong, sentence.rng)
    if wrong == low[place]:
        raise NoPlaceError
    sentence.replace(place, wrong)


def real_word(sentence: Sentence) -> None:
    """Writes a similar word of the vocabulary instead: a confusion set of Grundkiewicz et al. 2019."""
    neighbours = sentence.lexicon.neighbours
    place = sentence.draw(sentence.common(neighbours))
    options = neighbours[sentence.low[place]]
    # the list begins with the most similar words, which are preferred
    sentence.replace(place, options[int(sentence.rng.random() ** 2 * len(options))])


def _marks(sentence: Sentence, marks: str) -> list[int]:
    """Positions of these punctuation marks within the sentence, before a space."""
    return [
        i
        for i, _, piece, after in sentence.inner()
        if piece and piece in marks and after == " "
    ]


def comma_deletion(sentence: Sentence) -> None:
    """Leaves out a comma."""
    sentence.delete_mark(sentence.draw(_marks(sentence, ",")))


def comma_insertion(sentence: Sentence) -> None:
    """Adds a comma, before a conjunction by preference."""
    places = sentence.pairs()
    after_comma = word_class("after a comma")
    likely = [place for place in places if sentence.low[place + 1] in after_comma]
    place = sentence.draw(likely or places)
    sentence.write(place, sentence.word(place) + ",")


def final_mark(sentence: Sentence) -> None:
    """Leaves out the final mark, or writes a period for a question mark, or two periods."""
    pieces = sentence.pieces
    if len(pieces) < 2 or pieces[-1] not in _CLOSING or pieces[-2] in _CLOSING:
        raise NoPlaceError
    if pieces[-1] == "?" and sentence.chance(0.5):
        pieces[-1] = "."
    elif sentence.chance(0.1):
        pieces[-1] = ".."
    else:
        sentence.delete_mark(-1)


def apostrophe(sentence: Sentence) -> None:
    """Leaves out a word's apostrophe (dont, students)."""
    words = [word for word in sentence.low if "'" in word or "’" in word]
    place = sentence.draw(sentence.places(words))
    sentence.write(place, re.sub("['’]", "", sentence.word(place)))


def sentence_mark(sentence: Sentence) -> None:
    """Writes a comma for a semicolon or colon, or leaves it out."""
    i = sentence.draw(_marks(sentence, ";:"))
    sentence.pieces[i] = "," if sentence.chance(0.7) else ""


def capital(sentence: Sentence) -> None:
    """Writes a small letter at the start of the sentence, in "I" or in a name; seldom a capital where none belongs."""
    capitals = [
        place for place in sentence.places() if not sentence.word(place).islower()
    ]
    if capitals and sentence.chance(0.93):
        # the start of the sentence is missed more often than a name
        place = capitals[0] if sentence.chance(0.5) else sentence.draw(capitals)
        word = sentence.word(place)
        sentence.write(place, word[0].lower() + word[1:])
        sentence.free[place] = place == 0 and len(word) > 3
        return
    nouns = sentence.places(sentence.lexicon.nouns)
    place = sentence.draw(
        [place for place in nouns if place > 0 and sentence.word(place).islower()]
    )
    sentence.write(place, capitalised(sentence.word(place)))


def spacing(sentence: Sentence) -> None:
    """Joins words (alot, 12years), splits a compound (some times), or drops a hyphen or the space after a comma."""
    low = sentence.low
    pieces = sentence.pieces
    kind = sentence.rng.random()
    if kind < 0.3:
        compounds = table("split_compounds")
        places = sentence.places(compounds)
        if places:
            place = sentence.draw(places)
            sentence.replace(place, compounds[low[place]][0])
            return
    if kind < 0.5:
        gaps = [
            i
            for i, before, piece, after in sentence.inner()
            if piece == " "
            and (before in (",", ";") or before[:1].isdigit())
            and after[:1].isalpha()
        ]
        if gaps:
            pieces[sentence.draw(gaps)] = ""
            return
    if kind < 0.65:
        hyphens = [
            i
            for i, before, piece, after in sentence.inner()
            if piece == "-" and before.isalpha() and after.isalpha()
        ]
        if hyphens:
            pieces[sentence.draw(hyphens)] = " " if sentence.chance(0.7) else ""
            return

    # two words, mostly those that learners often join
    joinable = word_class("joinable")
    places = [
        place
        for place in sentence.pairs()
        if f"{low[place]} {low[place + 1]}" in joinable
    ]
    if not places or sentence.chance(0.2):
        if sentence.chance(0.5):
            raise NoPlaceError
        known = sentence.pairs(sentence.lexicon.words or None)
        places = [
            place for place in known if len(low[place]) + len(low[place + 1]) < 11
        ]
    place = sentence.draw(places)
    pieces[sentence.word_positions[place] + 1] = ""
    sentence.free[place : place + 2] = [False, False]
