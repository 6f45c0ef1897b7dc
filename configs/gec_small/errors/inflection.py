"""Word families (noun number, verb forms, adverbs, comparatives) found in a vocabulary by spelling rules.

No part-of-speech tagger is needed: a word counts as a verb when its base, -s, past and -ing forms all occur in the
vocabulary, and as a noun when its singular and plural do. Irregular forms and a core list make the rules work for a
corpus of any size.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .word_tables import VOWELS, table, word_class


@dataclass(frozen=True)
class VerbForms:
    """The five forms of one verb."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


def add_s(word: str) -> str:
    """The regular plural of a noun, or the third person of a verb."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if len(word) > 1 and word[-1] == "y" and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word in ("go", "do") else "s")


def _doubles(word: str) -> bool:
    """Whether the last consonant doubles before -ed and -ing (stop, begin)."""
    if word in word_class("doubling"):
        return True
    if (
        len(word) < 3
        or word[-1] in "aeiouwxy"
        or word[-2] not in VOWELS
        or word[-3] in VOWELS
    ):
        return False
    return sum(letter in "aeiouy" for letter in word) == 1


def add_ing(verb: str) -> str:
    """The -ing form of a verb's base form."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and len(verb) > 2:
        return verb[:-1] + "ing"
    return verb + (verb[-1] if _doubles(verb) else "") + "ing"


def add_ed(verb: str) -> str:
    """The regular past of a verb's base form."""
    if verb.endswith("e"):
        return verb + "d"
    if len(verb) > 1 and verb[-1] == "y" and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    return verb + (verb[-1] if _doubles(verb) else "") + "ed"


def plural(noun: str) -> str:
    """The plural of a noun, irregular ones included."""
    return table("irregular_plurals").get(noun, (add_s(noun),))[0]


def adverb(adjective: str) -> str:
    """The -ly adverb of an adjective."""
    if adjective.endswith("y") and len(adjective) > 3:
        return adjective[:-1] + "ily"
    if adjective.endswith("le"):
        return adjective[:-1] + "y"
    return adjective + ("ally" if adjective.endswith("ic") else "ly")


def compared(adjective: str) -> tuple[str, str]:
    """The comparative and superlative in -er and -est."""
    if adjective.endswith("y"):
        stem = adjective[:-1] + "i"
    elif adjective.endswith("e"):
        stem = adjective[:-1]
    else:
        stem = adjective + (adjective[-1] if _doubles(adjective) else "")
    return stem + "er", stem + "est"


def _verb(base: str) -> VerbForms:
    past, participle = table("irregular_verbs").get(base) or (
        add_ed(base),
        add_ed(base),
    )
    return VerbForms(
        base,
        {"have": "has", "be": "is"}.get(base) or add_s(base),
        past,
        participle,
        add_ing(base),
    )


@dataclass(frozen=True)
class WordFamilies:
    """The inflections of a vocabulary's words; all keys are in lower case."""

    plurals: dict[str, str]
    """singular -> plural"""
    singulars: dict[str, str]
    """plural -> singular"""
    verbs: dict[str, VerbForms]
    """any form of a verb -> all its forms (without be, have and do, which the edit `agreement` knows)"""
    adverbs: dict[str, str]
    """adjective -> adverb"""
    adjectives: dict[str, str]
    """adverb -> adjective"""
    comparatives: dict[str, tuple[str, ...]]
    """comparative or superlative -> wrong forms (more easier)"""


def _verb_bases(known: Collection[str]) -> list[str]:
    no_nouns = word_class("no nouns")
    bases = dict.fromkeys([*table("classes")["core verbs"], *table("irregular_verbs")])
    for word in known:
        # all four forms must be in use: "bed" and "king" then make no verb
        if (
            len(word) < 3
            or word in bases
            or word in no_nouns
            or word.endswith(("ing", "ed"))
            or not word.isascii()
        ):
            continue
        if add_ing(word) in known and add_ed(word) in known and add_s(word) in known:
            bases[word] = None
    return [base for base in bases if base not in ("be", "have", "do")]


def _noun_bases(known: Collection[str]) -> list[str]:
    no_nouns = word_class("no nouns")
    bases = dict.fromkeys(
        [*table("classes")["core nouns"], *table("irregular_plurals")]
    )
    for word in known:
        if (
            len(word) < 3
            or word in bases
            or word in no_nouns
            or word.endswith(("ss", "ous", "ing"))
            or "'" in word
        ):
            continue
        if add_s(word) in known:
            bases[word] = None
    return list(bases)


def word_families(vocabulary: Collection[str]) -> WordFamilies:
    """Finds the inflections of a lower-case vocabulary's words; the result depends on their order."""
    known = dict.fromkeys(vocabulary)
    verbs: dict[str, VerbForms] = {}
    for base in _verb_bases(known):
        forms = _verb(base)
        for form in (
            forms.base,
            forms.third,
            forms.past,
            forms.participle,
            forms.gerund,
        ):
            verbs.setdefault(form, forms)
    plurals: dict[str, str] = {}
    noun_first = word_class("core nouns") | table("irregular_plurals").keys()
    for noun in _noun_bases(known):
        # a word that is both (the help, to help) is taken for a verb unless it is a core noun
        if noun in noun_first or noun not in verbs:
            plurals[noun] = plural(noun)
    adverbs = {
        word: adverb(word)
        for word in known
        if len(word) > 3
        and word not in plurals
        and not word.endswith("ly")
        and adverb(word) in known
        and word not in word_class("no adjectives")
    }
    adverbs.update(
        {word: adverb(word) for word in sorted(word_class("stems of core adverbs"))}
    )
    adverbs["good"] = "well"
    comparatives = dict(table("irregular_comparatives"))
    core_adjectives = word_class("core adjectives")
    for word in dict.fromkeys([*known, *sorted(core_adjectives)]):
        more, most = compared(word)
        if len(word) > 2 and (
            word in core_adjectives or (more in known and most in known)
        ):
            comparatives[more] = ("more " + more, "more " + word, most, word)
            comparatives[most] = ("most " + most, "most " + word, more)
    return WordFamilies(
        plurals=plurals,
        singulars={many: one for one, many in plurals.items()},
        verbs=verbs,
        adverbs=adverbs,
        adjectives={ly: word for word, ly in adverbs.items()},
        comparatives=comparatives,
    )
