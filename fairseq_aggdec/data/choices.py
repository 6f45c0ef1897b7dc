"""What the edits of a sentence share: a random choice, and the replacement of a word by a table."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from fairseq_aggdec.data.sentence import Sentence
from fairseq_aggdec.data.word_tables import word_class

_Option = TypeVar("_Option")


def pick(options: Sequence[_Option], rng: Random) -> _Option:
    """One of the options, which must not be empty; all are equally likely."""
    return options[int(rng.random() * len(options))]


def substitute(sentence: Sentence, table: dict[str, tuple[str, ...]], rng: Random) -> bool:
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
