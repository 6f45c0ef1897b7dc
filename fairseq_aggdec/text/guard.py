"""Checks of a correction: no loops, no lost half of a sentence, no changes of numbers, code and addresses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from fairseq_aggdec.text.results import Edit

_END = re.compile(r"[.!?…][\"'”’»)\]]*$")
_NOT_PROSE = re.compile(r"[\d_\\/@#<>{}\[\]=*+|~^$]|\w[:(]\w|\w\.[a-z]")
_CODE_SPAN = re.compile(r"`[^`]+`")


def degenerated(source: Sequence[str], output: Sequence[str]) -> str | None:
    """The reason, for users, why an output cannot be a correction of its source; None if it can be one.

    Both are lists of words. A source of up to three words may lose words: "the the" becomes "the".
    """
    if len(output) > 1.5 * len(source) + 10:
        return f"the output is too long: {len(output)} words for {len(source)}"
    if 2 * len(output) < len(source) and (len(source) > 3 or not output):
        return f"the output lost words: {len(output)} are left of {len(source)}"
    known, found = (Counter(zip(words, words[1:], words[2:], strict=False)) for words in (source, output))
    for trigram, count in found.items():
        if count >= 4 and trigram not in known:
            return f"the output repeats '{' '.join(trigram)}' {count} times"
    return None


def kept_edits(source: str, edits: list[Edit]) -> list[Edit]:
    """Return the edits of a sentence that a small model may be trusted with.

    Edits of numbers, of words with signs of code, addresses or markup, and of code between backticks are dropped. Where
    the source does not end as a sentence does (a greeting, a title), edits that only change the case of its first
    letter are dropped, except "i" to "I", and a full stop that an edit adds at its end is cut from the edit.
    """
    code = [found.span() for found in _CODE_SPAN.finditer(source)]
    is_sentence = bool(_END.search(source))
    kept = []
    for edit in edits:
        end = edit.offset + edit.length
        old, new = source[edit.offset : end], edit.replacement
        if not is_sentence and new.endswith(".") and not old.endswith("."):
            new = new[:-1].rstrip()
        recased = edit.offset == 0 and old[1:] == new[1:] and old[:1].lower() == new[:1].lower()
        if (
            new == old
            or (recased and not is_sentence and old != "i")
            or any(char.isdigit() for char in new)
            or _NOT_PROSE.search(_chunk(source, edit.offset, end))
            or any(start < max(end, edit.offset + 1) and edit.offset < stop for start, stop in code)
        ):
            continue
        kept.append(Edit(edit.offset, edit.length, new))
    return kept


def _chunk(source: str, start: int, end: int) -> str:
    """The text between two positions, extended to white space on both sides; "" for an insertion beside white space."""
    if start == end and not (source[start - 1 : start].strip() and source[start : start + 1].strip()):
        return ""
    while start > 0 and not source[start - 1].isspace():
        start -= 1
    while end < len(source) and not source[end].isspace():
        end += 1
    return source[start:end]
