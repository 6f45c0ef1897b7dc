"""Random choices that are the same in every process and Python version, and hardly change when text is added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

from fairseq_aggdec.errors import AggdecError

_Option = TypeVar("_Option")


def sentence_key(sentence: str) -> int:
    """A 64-bit hash of a sentence."""
    return int.from_bytes(
        hashlib.blake2b(sentence.encode("utf-8"), digest_size=8).digest(), "big"
    )


def line_seed(seed: int, line_number: int) -> int:
    """The random seed of one line, mixed as in splitmix64; results do not depend on the process that has the line."""
    mixed = (
        seed * 0x9E3779B97F4A7C15 + line_number * 0xD1B54A32D192ED03
    ) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return mixed ^ (mixed >> 31)


def pick(options: Sequence[_Option], rng: Random) -> _Option:
    """One of the options, which must not be empty; all are equally likely."""
    return options[int(rng.random() * len(options))]


def hold_out(sentences: Iterable[str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Choose held-out sentences by their hash.

    Args:
        sentences: the sentences to choose from.
        sizes: {held-out set: number of sentences}.

    Returns:
        the sentences of each set, in the order of their hash. Whether a sentence is held out depends mostly on its own
        text: adding text moves few training sentences into a held-out set.

    Raises:
        AggdecError: there are no more sentences than the sets need together.
    """
    wanted = sum(sizes.values())
    ordered = sorted(
        set(sentences), key=lambda sentence: (sentence_key(sentence), sentence)
    )
    if len(ordered) <= wanted:
        raise AggdecError(
            f"{len(ordered)} sentences are too few to hold out {wanted}: lower the sizes or add text"
        )
    chosen: dict[str, list[str]] = {}
    start = 0
    for name, size in sizes.items():
        chosen[name] = ordered[start : start + size]
        start += size
    return chosen
