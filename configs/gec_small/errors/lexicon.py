"""The tables of a corpus's words that the edits use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .inflection import WordFamilies, word_families
from .vocabulary import spelling_neighbours


@dataclass(frozen=True)
class Lexicon:
    """Tables derived from a vocabulary; built once, read by every edit."""

    words: Mapping[str, int]
    """the vocabulary in lower case and how often each word occurs, to which spelling errors are confined; empty if it
    is too small for that"""
    families: WordFamilies
    """inflections"""
    nouns: frozenset[str]
    """singulars and plurals"""
    neighbours: Mapping[str, tuple[str, ...]]
    """word -> words one edit away"""


_SMALLEST_VOCABULARY = 2000
"""a smaller vocabulary lacks too many ordinary words"""


def build_lexicon(counts: Mapping[str, int]) -> Lexicon:
    """Makes the tables out of word counts, most frequent first; of no counts, the built-in words remain."""
    families = word_families(counts)
    return Lexicon(
        words=counts if len(counts) >= _SMALLEST_VOCABULARY else {},
        families=families,
        nouns=frozenset(families.plurals) | frozenset(families.singulars),
        neighbours=spelling_neighbours(dict(counts)),
    )
