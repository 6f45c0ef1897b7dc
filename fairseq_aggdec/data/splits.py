"""Held-out sets that stay the same when the training text changes, and long training examples made of short ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from fairseq_aggdec.errors import AggdecError


def sentence_key(sentence: str) -> int:
    """Returns a 64-bit hash of a sentence that is the same in every process and Python version."""
    return int.from_bytes(hashlib.blake2b(sentence.encode("utf-8"), digest_size=8).digest(), "big")


def hold_out(sentences: Iterable[str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Chooses held-out sentences by their hash.

    Args:
        sentences: the distinct clean sentences.
        sizes: number of sentences of each held-out set, by its name.

    Returns:
        The sentences of each set, in the order of their hash. Whether a sentence is held out depends on its own text
        and only weakly on the others, so adding text does not move training sentences into the test set in bulk.

    Raises:
        AggdecError: there are not more sentences than the sets need together.
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


def join_neighbours(sentences: Sequence[str], lines: int, min_words: int, max_words: int) -> Iterator[str]:
    """Joins neighbouring sentences of running text to long lines.

    Clean sentences are short, and a model loses its place beyond the positions that it was trained on: users paste
    several sentences at once, and learners forget full stops.

    Args:
        sentences: in the order of the text.
        lines: number of joined lines wanted; their first sentences are spread evenly over the text.
        min_words: sentences are added until a line has at least this many words; fewer near the end are dropped.
        max_words: a line that would have more is dropped.
    """
    step = max(1, len(sentences) // max(1, lines))
    for start in range(0, len(sentences), step):
        line: list[str] = []
        words = 0
        for sentence in sentences[start : start + min_words]:
            line.append(sentence)
            words += len(sentence.split())
            if words >= min_words:
                break
        if min_words <= words <= max_words:
            yield " ".join(line)
