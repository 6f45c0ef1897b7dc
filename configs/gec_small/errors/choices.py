"""The replacement of a word by a table."""

from __future__ import annotations

from random import Random

from experiments.chance import pick

from .sentence import Sentence
from .word_tables import word_class


def substitute(
    sentence: Sentence, table: dict[str, tuple[str, ...]], rng: Random
) -> bool:
    """Replaces one of the sentence's words that are in the table; returns whether there was one."""
    free = sentence.free
    places = [k for k, word in enumerate(sentence.low) if word in table and free[k]]
    if not places:
        return False
    k = pick(places, rng)
    # a word that stands in every sentence would otherwise be replaced far too often
    if sentence.low[k] in word_class("very frequent") and rng.random() < 0.7:
        k = pick(places, rng)
    sentence.replace(k, pick(table[sentence.low[k]], rng))
    return True
