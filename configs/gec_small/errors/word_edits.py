"""Errors in the choice and order of words: confused, missing, superfluous and misplaced ones.

Edits as in `grammar_edits`.
"""

from collections.abc import Mapping, Sequence

from .sentence import NoPlaceError, Sentence
from .word_tables import table, word_class

_LONGEST = 6  # words of a phrase in tables/connectives.txt


def substitute(sentence: Sentence, words: Mapping[str, Sequence[str]]) -> None:
    """Writes in place of one of the words another one: {word: others}."""
    places = sentence.places(words)
    place = sentence.draw(places)
    # a word that stands in every sentence would otherwise be replaced far too often
    if sentence.low[place] in word_class("very frequent") and sentence.chance(0.7):
        place = sentence.draw(places)
    sentence.replace(place, sentence.draw(words[sentence.low[place]]))


def pronoun(sentence: Sentence) -> None:
    """Confuses pronouns: case, number, relative pronouns, this/these."""
    substitute(sentence, table("pronouns"))


def quantifier(sentence: Sentence) -> None:
    """Confuses quantifiers: much/many, few/less, another/other."""
    substitute(sentence, table("quantifiers"))


def homophone(sentence: Sentence) -> None:
    """Writes another word that sounds (nearly) the same: there/their, then/than, live/leave."""
    substitute(sentence, table("homophones"))


def connective(sentence: Sentence) -> None:
    """Confuses conjunctions and set phrases (in the other hand)."""
    low = sentence.low
    connectives = table("connectives")
    places = []
    for place in sentence.places():
        # the longest: replacing a shorter phrase within it would leave its rest, "because of of"
        for length in range(_LONGEST, 0, -1):
            gaps = range(place, place + length - 1)
            phrase = " ".join(low[place : place + length])
            if phrase in connectives and all(map(sentence.adjacent, gaps)):
                places.append((place, length, phrase))
                break
    place, length, phrase = sentence.draw(places)
    sentence.replace(place, sentence.draw(connectives[phrase]))
    for j in range(place + length - 1, place, -1):
        sentence.delete_word(j)


def word_deletion(sentence: Sentence) -> None:
    """Leaves out a function word."""
    places = sentence.pairs(word_class("omissible"), first=1)
    sentence.delete_word(sentence.draw(places))


def word_insertion(sentence: Sentence) -> None:
    """Repeats a word, or adds a function word that fits the next word's class."""
    low = sentence.low
    lexicon = sentence.lexicon
    place = sentence.draw(sentence.pairs()) + 1
    if sentence.chance(0.15):
        sentence.insert_before(place, low[place - 1])
        return
    word = low[place]
    if word in word_class("subjects"):
        kind = "a subject"
    elif word in lexicon.adjectives_and_adverbs:
        kind = "an adjective"
    elif word in lexicon.nouns and low[place - 1] not in word_class("determiners"):
        kind = "a noun"
    elif word in lexicon.verbs:
        kind = "a verb"
    else:
        raise NoPlaceError
    added = table("classes")[f"added before {kind}"]
    sentence.insert_before(place, sentence.draw(added))


def word_swap(sentence: Sentence) -> None:
    """Exchanges two neighbouring words, adverbs by preference."""
    low = sentence.low
    places = [
        place
        for place in sentence.pairs(first=1)
        if sentence.word(place).islower() and sentence.word(place + 1).islower()
    ]
    adverbs = word_class("movable")
    movable = [
        place
        for place in places
        if not adverbs.isdisjoint(low[place : place + 2])
        or low[place + 1].endswith("ly")
    ]
    if places and not movable and sentence.chance(0.8):
        raise NoPlaceError
    place = sentence.draw(movable or places)
    if low[place] == low[place + 1] or not word_class("determiners").isdisjoint(
        low[place : place + 2]
    ):
        raise NoPlaceError
    first = sentence.word(place)
    sentence.write(place, sentence.word(place + 1))
    sentence.write(place + 1, first)
