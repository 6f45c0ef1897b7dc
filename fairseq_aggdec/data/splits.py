"""Held-out sets that hardly change when text is added, and long training examples made of short ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from fairseq_aggdec.errors import AggdecError


def sentence_key(sentence: str) -> int:
    """A 64-bit hash of a sentence, the same in every process and Python version."""
    return int.from_bytes(hashlib.blake2b(sentence.encode("utf-8"), digest_size=8).digest(), "big")


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


def join_neighbours(sentences: Sequence[str], lines: int, min_words: int, max_words: int) -> Iterator[str]:
    """Joins neighbouring sentences of running text to long lines.

    Clean sentences are short, users paste several sentences at once, and learners forget full stops: behind the
    positions that it was trained on, a model fails.

    Args:
        sentences: the sentences in the order of the text.
        lines: number of joined lines; their first sentences are spread evenly over the text.
        min_words: sentences are joined until a line has this many words; a shorter line at the end is left out.
        max_words: the most words of a line; a longer one is left out.
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
