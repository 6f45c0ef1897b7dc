"""Corrections that are none: words repeated, without end or lost, and a full stop behind a greeting or a title."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def degenerated(source: Sequence[str], output: Sequence[str]) -> str | None:
    """Why an output, in words, cannot be a correction of its source, as a phrase for users; None: it can be one.

    A source of up to three words may lose words: "the the" becomes "the".
    """
    if len(output) > 1.5 * len(source) + 10:
        return f"the output is too long: {len(output)} words for {len(source)}"
    if 2 * len(output) < len(source) and (len(source) > 3 or not output):
        return f"the output lost words: {len(output)} are left of {len(source)}"
    known = _trigrams(source)
    for trigram, count in _trigrams(output).items():
        if count >= 4 and trigram not in known:
            return f"the output repeats '{' '.join(trigram)}' {count} times"
    return None


def without_added_stop(source: str, output: str) -> str:
    """An output without a full stop at its end that its source has not: lines of letters, lists and poems have none."""
    ended = source.rstrip("\"'”’»)]")[-1:] in (".", "!", "?", "…")
    return output if ended or not output.endswith(".") else output[:-1].rstrip()


def _trigrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(words, words[1:], words[2:], strict=False))
