"""Grammatical errors: articles, prepositions, noun number, agreement, verb form, part of speech.

An edit is a function (sentence, lexicon, rng) -> bool: it makes one error in the sentence, or returns False and leaves
it alone when it finds no place for one.
"""

from __future__ import annotations

from random import Random

from experiments.chance import pick

from .choices import substitute
from .inflection import VerbForms
from .lexicon import Lexicon
from .sentence import Sentence
from .word_tables import VOWELS, table, word_class

_ARTICLES = frozenset({"a", "an", "the"})
_BE_HAVE = frozenset("is are was were be been being am has have had".split())
_SINGULAR_VERBS = frozenset("is was has does isn't wasn't hasn't doesn't".split())
_VERB_SUBJECTS = frozenset("i you he she it we they who that which people".split())


def article(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Leaves out (most often), adds or exchanges an article."""
    low, free = sentence.low, sentence.free
    kind = rng.random()
    if kind < 0.32:
        places = [
            k
            for k, word in enumerate(low)
            if word in lexicon.nouns
            and free[k]
            and sentence.word(k).islower()
            and (
                k == 0
                or (
                    low[k - 1] not in word_class("determiners")
                    and sentence.after_space(k)
                )
            )
            and (k < 2 or low[k - 2] not in word_class("determiners"))
        ]
        if places:
            k = pick(places, rng)
            # Before an adjective the article belongs in front of both.
            if (
                k > 1
                and low[k - 1] in lexicon.families.adverbs
                and sentence.adjacent(k - 1)
            ):
                k -= 1
                if k > 0 and low[k - 1] in word_class("determiners"):
                    return False
            if low[k] in lexicon.families.singulars or rng.random() < 0.7:
                sentence.insert_before(k, "the")
            else:
                sentence.insert_before(k, "an" if low[k][0] in VOWELS else "a")
            return True
    places = [k for k, word in enumerate(low) if word in _ARTICLES and free[k]]
    if not places:
        return False
    k = pick(places, rng)
    if (kind < 0.8 or (low[k] == "the" and rng.random() < 0.7)) and sentence.adjacent(
        k
    ):
        sentence.delete(k)
    elif low[k] == "the":
        following = low[k + 1][0] if k + 1 < len(low) else "b"
        sentence.replace(k, "an" if following in VOWELS else "a")
    else:
        sentence.replace(
            k, "the" if rng.random() < 0.65 else "a" if low[k] == "an" else "an"
        )
    return True


def preposition(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Exchanges, leaves out or adds a preposition."""
    low, free = sentence.low, sentence.free
    kind = rng.random()
    if kind < 0.12:
        spurious = table("spurious_prepositions")
        places = [
            k
            for k in range(len(low) - 1)
            if low[k] in spurious and sentence.adjacent(k)
        ]
        places = [
            k
            for k in places
            if low[k + 1] not in table("prepositions") and low[k + 1] != "that"
        ]
        if places:
            k = pick(places, rng)
            sentence.insert_before(k + 1, pick(spurious[low[k]], rng))
            free[k] = False
            return True
    if kind < 0.35:
        optional = word_class("optional prepositions")
        places = [
            k for k in range(1, len(low)) if low[k] in optional and sentence.adjacent(k)
        ]
        if places:
            sentence.delete(pick(places, rng))
            return True
    places = [
        k for k, word in enumerate(low) if word in table("prepositions") and free[k]
    ]
    if not places:
        return False
    k = pick(places, rng)
    options = table("prepositions")[low[k]]
    # The first confusion of each list is the commonest.
    sentence.replace(k, options[0] if rng.random() < 0.4 else pick(options, rng))
    return True


def noun_number(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes the singular for the plural (most often), the plural for the singular, or a plural English lacks."""
    low, free = sentence.low, sentence.free
    plurals, singulars, unheard = (
        lexicon.families.plurals,
        lexicon.families.singulars,
        table("uncountable_plurals"),
    )
    many = [k for k, word in enumerate(low) if word in singulars and free[k]]
    if many and rng.random() < 0.85:
        k = pick(many, rng)
        if low[k] in unheard and rng.random() < 0.4:
            sentence.replace(k, pick(unheard[low[k]], rng))
        else:
            sentence.replace(k, singulars[low[k]])
        return True
    wrong = [k for k, word in enumerate(low) if word in unheard and free[k]]
    if wrong and rng.random() < 0.4:
        k = pick(wrong, rng)
        sentence.replace(k, pick(unheard[low[k]], rng))
        return True
    # Without a plural to spoil, mostly leave the sentence to another error: missing -s is by far the commoner.
    if rng.random() < 0.6:
        return False
    one = [
        k
        for k, word in enumerate(low)
        if word in plurals and free[k] and (k == 0 or sentence.word(k).islower())
    ]
    if one:
        k = pick(one, rng)
        sentence.replace(k, plurals[low[k]])
        return True
    return False


def _verb_places(sentence: Sentence, lexicon: Lexicon) -> list[int]:
    """Words that are verbs as far as their form and the word before them tell."""
    low, free, verbs = sentence.low, sentence.free, lexicon.families.verbs
    return [
        k
        for k, word in enumerate(low)
        if word in verbs
        and free[k]
        and (
            k == 0
            or (
                low[k - 1] not in word_class("determiners")
                or low[k - 1] in _VERB_SUBJECTS
            )
        )
    ]


def agreement(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Breaks the agreement of a verb with its subject: is/are, has/have, do/does, verb + s."""
    low, free = sentence.low, sentence.free
    places = [k for k, word in enumerate(low) if word in table("agreement") and free[k]]
    # "have" after a modal or "to" does not agree with anything.
    places = [
        k
        for k in places
        if k == 0 or (low[k - 1] not in word_class("modals") and low[k - 1] != "to")
    ]
    verbs: list[int] = []
    for k in _verb_places(sentence, lexicon):
        forms = lexicon.families.verbs[low[k]]
        before = low[k - 1] if k else ""
        if low[k] == forms.third:
            verbs += (k, k)  # a lost -s is commoner than a superfluous one
        elif low[k] == forms.base and (
            before in _VERB_SUBJECTS or before in lexicon.families.singulars
        ):
            verbs.append(k)
    if verbs and (not places or rng.random() < 0.5):
        k = pick(verbs, rng)
        forms = lexicon.families.verbs[low[k]]
        sentence.replace(k, forms.base if low[k] == forms.third else forms.third)
        return True
    if not places:
        return False
    k = pick(places, rng)
    # Learners write the singular for the plural more often than the reverse.
    if low[k] in _SINGULAR_VERBS and rng.random() < 0.4:
        k = pick(places, rng)
    if low[k] == "was" and rng.random() < 0.7:
        return False
    sentence.replace(k, pick(table("agreement")[low[k]], rng))
    return True


def _wrong_form(written: str, before: str, forms: VerbForms, rng: Random) -> str:
    """Another form of the verb that a learner may write after the word `before`."""
    choice = rng.random()
    if written == forms.gerund:
        return (
            forms.base
            if choice < 0.6
            else "to " + forms.base
            if choice < 0.8
            else forms.past
        )
    if written == forms.base:
        if before == "to":
            return (
                forms.gerund
                if choice < 0.5
                else forms.past
                if choice < 0.8
                else forms.third
            )
        if before in word_class("modals"):
            return (
                "to " + forms.base
                if choice < 0.3
                else forms.past
                if choice < 0.6
                else forms.gerund
            )
        return (
            forms.gerund
            if choice < 0.4
            else "to " + forms.base
            if choice < 0.65
            else forms.past
        )
    if before in _BE_HAVE and written == forms.participle:
        return (
            forms.base
            if choice < 0.5
            else forms.past
            if forms.past != written
            else forms.gerund
        )
    if written == forms.third:
        return (
            forms.base if choice < 0.4 else forms.gerund if choice < 0.7 else forms.past
        )
    # Learners regularise irregular pasts: "buyed".
    if choice < 0.15 and forms.past != forms.base + "ed":
        return forms.base + ("d" if forms.base[-1] == "e" else "ed")
    return (
        forms.base
        if choice < 0.75
        else forms.gerund
        if choice < 0.9
        else forms.participle
    )


def verb_form(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes a wrong form of a verb, or leaves out an auxiliary or "to" before it."""
    low = sentence.low
    if rng.random() < 0.2:
        helpers = [
            k
            for k in range(1, len(low) - 1)
            if (low[k] in word_class("auxiliaries") or low[k] == "to")
            and low[k + 1] in lexicon.families.verbs
            and sentence.adjacent(k)
        ]
        if helpers:
            sentence.delete(pick(helpers, rng))
            return True
    places = _verb_places(sentence, lexicon)
    if not places:
        return False
    k = pick(places, rng)
    wrong = _wrong_form(
        low[k], low[k - 1] if k else "", lexicon.families.verbs[low[k]], rng
    )
    if wrong == low[k]:
        return False
    sentence.replace(k, wrong)
    return True


def word_form(sentence: Sentence, lexicon: Lexicon, rng: Random) -> bool:
    """Writes another part of speech of the same root (easy/easily, succeed/success), or more easier."""
    if rng.random() < 0.6 and substitute(sentence, table("derivations"), rng):
        return True
    families = lexicon.families
    low, free = sentence.low, sentence.free
    places = [
        k
        for k, word in enumerate(low)
        if free[k]
        and (
            word in families.adjectives
            or word in families.comparatives
            or word in families.adverbs
        )
    ]
    if not places:
        return False
    k = pick(places, rng)
    word = low[k]
    if word in families.comparatives:
        sentence.replace(k, pick(families.comparatives[word], rng))
    else:
        sentence.replace(k, families.adjectives.get(word) or families.adverbs[word])
    return True
