"""What the edits share: choosing a place, choosing a wrong form, replacing a word that a table knows."""

from __future__ import annotations

from random import Random

from fairseq_aggdec.data.sentence import Sentence
from fairseq_aggdec.data.word_tables import word_class


def pick(places: list[int], rng: Random) -> int:
    """One of the places, which must not be empty."""
    return places[int(rng.random() * len(places))]


def one_of(options: tuple[str, ...], rng: Random) -> str:
    """One of the options, each as likely."""
    return options[int(rng.random() * len(options))]


def substitute(sentence: Sentence, table: dict[str, tuple[str, ...]], rng: Random) -> bool:
    """Replaces one word of the sentence that the table knows."""
    free = sentence.free
    places = [k for k, word in enumerate(sentence.low) if word in table and free[k]]
    if not places:
        return False
    k = pick(places, rng)
    # A word that stands in every sentence would otherwise be confused far too often.
    if sentence.low[k] in word_class("very frequent") and rng.random() < 0.7:
        k = pick(places, rng)
    sentence.replace(k, one_of(table[sentence.low[k]], rng))
    return True
