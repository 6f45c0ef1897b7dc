"""The frequent words of a corpus and their spelling neighbours, in bounded memory."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def count_words(
    lines: Iterable[str],
    size: int,
    min_count: int = 3,
) -> dict[str, int]:
    """The `size` most frequent words, with counts, most frequent first (ties in alphabetical order).

    Only words in lower case are counted, so that names are left out. Whenever there are 20 times `size` entries, the
    rare ones are dropped, so that memory stays bounded.
    """
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word in _WORD.findall(line) if word.islower())
        if len(counts) > 20 * size:
            counts = Counter(_top(counts, 5 * size))
    return {
        word: count for word, count in _top(counts, size).items() if count >= min_count
    }


def _top(counts: Counter[str], size: int) -> dict[str, int]:
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: counts[word] for word in ordered[:size]}


_SOUND_CLASSES = str.maketrans("aeiouybpfvckqgjxszdtlrmn", "000000111122223344556677")


def sound_key(word: str) -> str:
    """A coarse key of a word's sound: its first letter, then classes of consonants, without vowels and repetitions."""
    heard = re.sub("gh|h|w", "", word.replace("ph", "f"))
    classes = re.sub(r"(.)\1+", r"\1", heard.translate(_SOUND_CLASSES))
    return word[:1] + classes[1:].replace("0", "")


def within_one_edit(word: str, other: str) -> bool:
    """Whether one insertion, deletion, substitution or transposition turns one word into the other."""
    if word == other:
        return False
    # the letters after those that both begin with
    same = 0
    while word[same : same + 1] == other[same : same + 1]:
        same += 1
    rest = word[same:]
    other_rest = other[same:]
    is_transposed = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return (
        is_transposed
        or rest[1:] == other_rest  # deleted
        or rest[1:] == other_rest[1:]  # substituted
        or rest == other_rest[1:]  # inserted
    )


_CONFUSED_WORDS = 10_000
"""how many words have a confusion set, the most frequent ones"""
_MOST_NEIGHBOURS = 6
"""the most words in a confusion set"""


def spelling_neighbours(counts: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Confusion sets of the most frequent words: words one edit away, first those that sound the same.

    Grundkiewicz et al. 2019 (section 3) take such sets from a spell checker; here they come from the corpus's
    vocabulary. Inflections (-s, -d) are left to the grammatical errors.
    """
    without_apostrophe = re.compile("[^'’]{3,}")
    words = list(filter(without_apostrophe.fullmatch, counts))
    del words[_CONFUSED_WORDS:]

    # two words one edit apart have a form in common that lacks at most one letter
    buckets: dict[str, list[str]] = defaultdict(list)
    for word in words:
        forms = {word}
        for place in range(len(word)):
            forms.add(word[:place] + word[place + 1 :])
        for form in forms:
            buckets[form].append(word)
    near: dict[str, set[str]] = {word: set() for word in words}
    for bucket in buckets.values():
        for word in bucket:
            near[word].update(
                other
                for other in bucket
                if other[0] == word[0]
                and within_one_edit(word, other)
                and not _differ_by_ending(word, other)
            )

    neighbours: dict[str, tuple[str, ...]] = {}
    for word in words:
        key = sound_key(word)
        others = sorted(
            near[word],
            key=lambda other: (sound_key(other) != key, -counts[other], other),
        )
        if others:
            neighbours[word] = tuple(others[:_MOST_NEIGHBOURS])
    return neighbours


def _differ_by_ending(word: str, other: str) -> bool:
    return any(word + ending == other or other + ending == word for ending in "sd")
