"""The tables of a corpus's words that the edits use.

No part-of-speech tagger is needed: a word counts as a verb when its base, -s, past and -ing forms all occur in the
vocabulary, and as a noun when its singular and plural do. Irregular forms and a core list make the rules work for a
corpus of any size.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .inflection import VerbForms, inflect, plural, verb_forms
from .vocabulary import spelling_neighbours
from .word_tables import table, word_class


@dataclass(frozen=True)
class Lexicon:
    """Tables derived from a vocabulary; built once, read by every edit. All words are in lower case."""

    words: Mapping[str, int]
    """the vocabulary and how often each word occurs, to which spelling errors are confined; empty if it is too small
    for that"""
    plurals: Mapping[str, str]
    """singular -> plural"""
    singulars: Mapping[str, str]
    """plural -> singular"""
    nouns: frozenset[str]
    """singulars and plurals"""
    verbs: Mapping[str, VerbForms]
    """any form of a verb -> all its forms (without be, have and do, which the edit `agreement` knows)"""
    adverbs: Mapping[str, str]
    """adjective -> adverb"""
    adjectives_and_adverbs: Mapping[str, str]
    """adjective -> adverb, and adverb -> adjective"""
    comparatives: Mapping[str, tuple[str, ...]]
    """comparative or superlative -> wrong forms (more easier)"""
    neighbours: Mapping[str, tuple[str, ...]]
    """word -> words one edit away"""


_SMALLEST_VOCABULARY = 2000
"""a smaller vocabulary lacks too many ordinary words"""


def build_lexicon(counts: Mapping[str, int]) -> Lexicon:
    """Makes the tables out of word counts, most frequent first; of no counts, the built-in words remain."""
    verbs: dict[str, VerbForms] = {}
    for base in _bases(counts, "verb", "ing ed s", r"ing$|ed$|[^\x00-\x7f]"):
        forms = verb_forms(base)
        for form in forms:
            verbs.setdefault(form, forms)

    # a word that is both (the help, to help) is taken for a verb unless it is a core noun
    nouns_first = word_class("core nouns") | table("irregular_nouns").keys()
    plurals = {
        noun: plural(noun)
        for noun in _bases(counts, "noun", "s", "ss$|ous$|ing$|'")
        if noun in nouns_first or noun not in verbs
    }

    no_adjectives = {*word_class("no adjectives"), *plurals}
    adjectives = [
        word
        for word in counts
        if len(word) > 3
        and word not in no_adjectives
        and not word.endswith("ly")
        and inflect(word, "ly") in counts
    ]
    adjectives += table("classes")["stems of core adverbs"]
    adverbs = {word: inflect(word, "ly") for word in adjectives} | {"good": "well"}

    return Lexicon(
        words=counts if len(counts) >= _SMALLEST_VOCABULARY else {},
        plurals=plurals,
        singulars={many: one for one, many in plurals.items()},
        nouns=frozenset(plurals) | frozenset(plurals.values()),
        verbs=verbs,
        adverbs=adverbs,
        adjectives_and_adverbs=adverbs | {ly: word for word, ly in adverbs.items()},
        comparatives=_comparatives(counts),
        neighbours=spelling_neighbours(counts),
    )


def _bases(
    known: Mapping[str, int], kind: str, endings: str, other: str
) -> dict[str, None]:
    """The verbs or nouns: core and irregular ones, and the known words that occur with all of the endings.

    So "bed" and "king" make no verb. A word with the pattern `other` is none.
    """
    no_nouns = word_class("no nouns")
    core = [*table("classes")[f"core {kind}s"], *table(f"irregular_{kind}s")]
    found = [
        word
        for word in known
        if len(word) > 2
        and word not in no_nouns
        and not re.search(other, word)
        and all(inflect(word, ending) in known for ending in endings.split())
    ]
    return dict.fromkeys([*core, *found])


def _comparatives(known: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """See `Lexicon.comparatives`."""
    core = table("classes")["core adjectives"]
    comparatives = dict(table("irregular_comparatives"))
    for word in dict.fromkeys([*known, *core]):
        more = inflect(word, "er")
        most = inflect(word, "est")
        if len(word) > 2 and (word in core or (more in known and most in known)):
            comparatives[more] = (f"more {more}", f"more {word}", most, word)
            comparatives[most] = (f"most {most}", f"most {word}", more)
    return comparatives
