"""The frequent words of a corpus and their spelling neighbours, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def count_words(
    lines: Iterable[str], size: int = 30_000, min_count: int = 3
) -> dict[str, int]:
    """The `size` most frequent words, with counts, most frequent first (ties in alphabetical order).

    Only words in lower case are counted, so that names are left out. Whenever there are 20 times `size` entries, the
    rare ones are dropped, so that memory stays bounded.
    """
    counts: Counter[str] = Counter()
    limit = 20 * size
    for line in lines:
        counts.update(word for word in _WORD.findall(line) if word.islower())
        if len(counts) > limit:
            counts = Counter(dict(_top(counts, limit // 4)))
    return {word: count for word, count in _top(counts, size) if count >= min_count}


def _top(counts: Counter[str], size: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]


_SOUND_CLASSES = str.maketrans("aeiouybpfvckqgjxszdtlrmn", "000000111122223344556677")


def sound_key(word: str) -> str:
    """A coarse key of a word's sound: its first letter, then classes of consonants, without vowels and repetitions."""
    coded = (
        word.replace("ph", "f")
        .replace("gh", "")
        .replace("h", "")
        .replace("w", "")
        .translate(_SOUND_CLASSES)
    )
    kept = [
        symbol for i, symbol in enumerate(coded) if i == 0 or symbol != coded[i - 1]
    ]
    return word[:1] + "".join(symbol for symbol in kept[1:] if symbol != "0")


def within_one_edit(a: str, b: str) -> bool:
    """Whether one insertion, deletion, substitution or transposition turns a into b."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    shorter = min(len(a), len(b))
    i = 0
    while i < shorter and a[i] == b[i]:
        i += 1
    if a[i + 1 :] == b[i + 1 :] or a[i + 1 :] == b[i:] or a[i:] == b[i + 1 :]:
        return True
    return a[i + 2 :] == b[i + 2 :] and a[i : i + 2] == b[i : i + 2][::-1]


_CONFUSED_WORDS = 10_000
"""the number of words that have a confusion set, the most frequent ones"""
_MOST_NEIGHBOURS = 6
"""the most words in a confusion set"""


def spelling_neighbours(counts: dict[str, int]) -> dict[str, tuple[str, ...]]:
    """Confusion sets of the most frequent words: words one edit away, first those that sound the same.

    Grundkiewicz et al. 2019 (section 3) take such sets from a spell checker; here they come from the corpus's own
    vocabulary. Inflections (-s, -d) are left to the grammatical errors.
    """
    words = [
        word for word in counts if len(word) > 2 and "'" not in word and "’" not in word
    ][:_CONFUSED_WORDS]
    buckets: dict[str, list[str]] = {}
    for word in words:
        # two words one edit apart have a form in common that lacks at most one letter
        for form in {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}:
            buckets.setdefault(form, []).append(word)
    found: dict[str, set[str]] = {}
    for bucket in buckets.values():
        for a in bucket if len(bucket) > 1 else ():
            found.setdefault(a, set()).update(
                b for b in bucket if b[0] == a[0] and within_one_edit(a, b)
            )
    neighbours: dict[str, tuple[str, ...]] = {}
    for word in words:
        others = [
            o
            for o in found.get(word, ())
            if o != word + "s"
            and word != o + "s"
            and o != word + "d"
            and word != o + "d"
        ]
        key = sound_key(word)
        others.sort(key=lambda other: (sound_key(other) != key, -counts[other], other))
        if others:
            neighbours[word] = tuple(others[:_MOST_NEIGHBOURS])
    return neighbours
