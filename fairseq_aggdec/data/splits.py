"""Held-out sets that hardly change when text is added."""

from __future__ import annotations

from collections.abc import Iterable

from fairseq_aggdec.data.chance import sentence_key
from fairseq_aggdec.errors import AggdecError


def hold_out(sentences: Iterable[str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Chooses held-out sentences by their hash.

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
    ordered = sorted(set(sentences), key=lambda sentence: (sentence_key(sentence), sentence))
    if len(ordered) <= wanted:
        raise AggdecError(f"{len(ordered)} sentences are too few to hold out {wanted}: lower the sizes or add text")
    chosen: dict[str, list[str]] = {}
    start = 0
    for name, size in sizes.items():
        chosen[name] = ordered[start : start + size]
        start += size
    return chosen
