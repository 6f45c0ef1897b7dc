"""What the edits need to know about the words of a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairseq_aggdec.data.inflection import WordFamilies, word_families
from fairseq_aggdec.data.vocabulary import spelling_neighbours


@dataclass(frozen=True)
class Lexicon:
    """Tables derived from a vocabulary; built once, read by every edit."""

    words: frozenset[str]
    """the vocabulary, lower case, to which spelling errors are confined; empty if it is too small to tell"""
    families: WordFamilies
    """inflections"""
    nouns: frozenset[str]
    """singulars and plurals"""
    neighbours: Mapping[str, tuple[str, ...]]
    """word -> words one edit away"""


_SMALLEST_VOCABULARY = 2000
"""A smaller vocabulary misses ordinary words, so that its gaps say nothing about a word."""


def build_lexicon(counts: Mapping[str, int]) -> Lexicon:
    """Derives the tables from word counts, most frequent first; an empty mapping leaves the built-in words."""
    families = word_families(counts)
    return Lexicon(
        words=frozenset(counts if len(counts) >= _SMALLEST_VOCABULARY else ()),
        families=families,
        nouns=frozenset(families.plurals) | frozenset(families.singulars),
        neighbours=spelling_neighbours(dict(counts)),
    )
