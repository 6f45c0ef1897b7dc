"""The check of every corrector: an output that loops, or has lost much of its source, is no correction."""

from collections import Counter
from collections.abc import Sequence


def degenerated(source: Sequence[str], output: Sequence[str]) -> str | None:
    """The reason, for users, why an output cannot be a correction of its source; None if it can be one.

    Both are lists of words. A source of up to three words may lose words: "the the" becomes "the".
    """
    if len(output) > 1.5 * len(source) + 10:
        return f"the output is too long: {len(output)} words for {len(source)}"
    if 2 * len(output) < len(source) and (len(source) > 3 or not output):
        return f"the output lost words: {len(output)} are left of {len(source)}"
    of_source = _trigrams(source)
    for trigram, count in _trigrams(output).items():
        if count >= 4 and trigram not in of_source:
            return f"the output repeats '{' '.join(trigram)}' {count} times"
    return None


def _trigrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(words, words[1:], words[2:], strict=False))
