"""Grammatical errors: articles, prepositions, noun number, agreement, verb form, part of speech.

An edit is a function of a sentence: it makes one error, or raises `NoPlaceError` and leaves the sentence as it is.
"""

from collections.abc import Sequence

from .inflection import VerbForms
from .sentence import NoPlaceError, Sentence
from .word_edits import substitute
from .word_tables import VOWELS, table, word_class


def article(sentence: Sentence) -> None:
    """Leaves out (most often), adds or exchanges an article."""
    low = sentence.low
    lexicon = sentence.lexicon
    kind = sentence.rng.random()
    if kind < 0.32:
        places = [
            place
            for place in sentence.places(lexicon.nouns)
            if sentence.word(place).islower()
            and (place == 0 or sentence.spaced(place - 1))
            and word_class("determiners").isdisjoint(low[max(0, place - 2) : place])
        ]
        if places:
            place = sentence.draw(places)
            # before an adjective the article belongs in front of both
            adjective = place > 1 and low[place - 1] in lexicon.adverbs
            if adjective and sentence.adjacent(place - 1):
                place -= 1
            definite = low[place] in lexicon.singulars or sentence.chance(0.7)
            sentence.insert_before(
                place, "the" if definite else _indefinite(low[place:])
            )
            return

    place = sentence.draw(sentence.places(word_class("articles")))
    deleted = kind < 0.8 or (low[place] == "the" and sentence.chance(0.7))
    if deleted and sentence.adjacent(place):
        sentence.delete_word(place)
    elif low[place] == "the":
        sentence.replace(place, _indefinite(low[place + 1 :]))
    elif sentence.chance(0.65):
        sentence.replace(place, "the")
    else:
        sentence.replace(place, "a" if low[place] == "an" else "an")


def _indefinite(following: Sequence[str]) -> str:
    """The indefinite article before these words."""
    return "an" if following and following[0][0] in VOWELS else "a"


def preposition(sentence: Sentence) -> None:
    """Exchanges, leaves out or adds a preposition."""
    low = sentence.low
    kind = sentence.rng.random()
    prepositions = table("prepositions")
    if kind < 0.12:
        spurious = table("spurious_prepositions")
        places = [
            place
            for place in sentence.pairs(spurious)
            if low[place + 1] not in prepositions and low[place + 1] != "that"
        ]
        if places:
            place = sentence.draw(places)
            sentence.insert_before(place + 1, sentence.draw(spurious[low[place]]))
            sentence.free[place] = False
            return
    if kind < 0.35:
        places = sentence.pairs(word_class("optional prepositions"), first=1)
        if places:
            sentence.delete_word(sentence.draw(places))
            return
    place = sentence.draw(sentence.places(prepositions))
    options = prepositions[low[place]]
    # the first confusion of each list is the commonest
    sentence.replace(
        place, options[0] if sentence.chance(0.4) else sentence.draw(options)
    )


def noun_number(sentence: Sentence) -> None:
    """Writes the singular for the plural (most often), the plural for the singular, or a plural English lacks."""
    low = sentence.low
    lexicon = sentence.lexicon
    unheard = table("uncountable_plurals")
    many = sentence.places(lexicon.singulars)
    wrong = sentence.places(unheard)
    if many and sentence.chance(0.85):
        place = sentence.draw(many)
        if low[place] in unheard and sentence.chance(0.4):
            sentence.replace(place, sentence.draw(unheard[low[place]]))
        else:
            sentence.replace(place, lexicon.singulars[low[place]])
    elif wrong and sentence.chance(0.4):
        place = sentence.draw(wrong)
        sentence.replace(place, sentence.draw(unheard[low[place]]))
    # without a plural to spoil, mostly leave the sentence to another error: a missing -s is by far the commoner
    elif sentence.chance(0.6):
        raise NoPlaceError
    else:
        place = sentence.draw(sentence.common(lexicon.plurals))
        sentence.replace(place, lexicon.plurals[low[place]])


def _verb_places(sentence: Sentence) -> list[int]:
    """Words that are verbs by their form and by the word before them."""
    nominal = word_class("determiners") - word_class("subjects of a verb")
    return [
        place
        for place in sentence.places(sentence.lexicon.verbs)
        if sentence.before(place) not in nominal
    ]


def agreement(sentence: Sentence) -> None:
    """Breaks the agreement of a verb with its subject: is/are, has/have, do/does, verb + s."""
    low = sentence.low
    lexicon = sentence.lexicon
    confused = table("agreement")
    # "have" after a modal or "to" does not agree with anything
    places = [
        place
        for place in sentence.places(confused)
        if sentence.before(place) not in word_class("modals")
    ]

    # verbs whose -s can be lost, or added after a subject in the singular
    subjects = word_class("subjects of a verb")
    verbs: list[int] = []
    for place in _verb_places(sentence):
        forms = lexicon.verbs[low[place]]
        before = sentence.before(place)
        if low[place] == forms.third:
            verbs += (place, place)  # a lost -s is commoner than a superfluous one
        elif low[place] == forms.base and (
            before in subjects or before in lexicon.singulars
        ):
            verbs.append(place)
    if verbs and (not places or sentence.chance(0.5)):
        place = sentence.draw(verbs)
        forms = lexicon.verbs[low[place]]
        sentence.replace(
            place, forms.base if low[place] == forms.third else forms.third
        )
        return

    # forms of be, have and do; learners write the singular for the plural more often than the reverse
    place = sentence.draw(places)
    if low[place] in word_class("singular verbs") and sentence.chance(0.4):
        place = sentence.draw(places)
    if low[place] == "was" and sentence.chance(0.7):
        raise NoPlaceError
    sentence.replace(place, sentence.draw(confused[low[place]]))


def _wrong_form(written: str, before: str, forms: VerbForms, choice: float) -> str:
    """Another form of the verb that a learner may write after the word `before`; `choice`: from 0 to below 1."""
    if written == forms.gerund:
        kind = "gerund"
    elif written == forms.base:
        after_modal = "base after a modal" if before in word_class("modals") else "base"
        kind = "base after to" if before == "to" else after_modal
    elif written == forms.participle and before in word_class("be and have"):
        kind = "participle like the past" if written == forms.past else "participle"
    elif written == forms.third:
        kind = "third"
    # learners regularise irregular pasts: "buyed"
    elif choice < 0.15 and forms.past != forms.base + "ed":
        return forms.base + ("d" if forms.base[-1] == "e" else "ed")
    else:
        kind = "past"
    wrong = {**forms._asdict(), "infinitive": f"to {forms.base}"}
    shares = map(str.split, table("wrong_verb_forms")[kind])
    return next(wrong[form] for form, end in shares if choice < float(end))


def verb_form(sentence: Sentence) -> None:
    """Writes a wrong form of a verb, or leaves out an auxiliary or "to" before it."""
    low = sentence.low
    verbs = sentence.lexicon.verbs
    if sentence.chance(0.2):
        auxiliaries = sentence.pairs(word_class("auxiliaries"), first=1)
        places = [place for place in auxiliaries if low[place + 1] in verbs]
        if places:
            sentence.delete_word(sentence.draw(places))
            return
    place = sentence.draw(_verb_places(sentence))
    choice = sentence.rng.random()
    wrong = _wrong_form(low[place], sentence.before(place), verbs[low[place]], choice)
    if wrong == low[place]:
        raise NoPlaceError
    sentence.replace(place, wrong)


def word_form(sentence: Sentence) -> None:
    """Writes another part of speech of the same root (easy/easily, succeed/success), or more easier."""
    derivations = table("derivations")
    if sentence.chance(0.6) and sentence.places(derivations):
        substitute(sentence, derivations)
        return
    comparatives = sentence.lexicon.comparatives
    others = sentence.lexicon.adjectives_and_adverbs
    low = sentence.low
    places = [
        place
        for place in sentence.places()
        if low[place] in comparatives or low[place] in others
    ]
    place = sentence.draw(places)
    word = low[place]
    if word in comparatives:
        sentence.replace(place, sentence.draw(comparatives[word]))
    else:
        sentence.replace(place, others[word])
