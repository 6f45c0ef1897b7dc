"""Detokenises English in the Penn Treebank convention ("do n't", "`` word ''"), which test sets such as JFLEG use.

sacremoses' detokeniser follows the Moses convention and leaves "do n't" in two pieces.
"""

from __future__ import annotations

import re

_CONTRACTION = re.compile(r"(?<=\w) (n't|'s|'re|'ve|'ll|'d|'m)(?!\w)", re.IGNORECASE)
_CLOSING = re.compile(r" ([,.;:!?%)\]}]|\.\.\.)(?=\s|$|[\"'.,)])")
_OPENING = re.compile(r"([(\[{$#]) (?=\S)")
_PAIR = re.compile(r'(^|\s)" (.*?) "(?=\s|$|[,.;:!?)])')


def detokenise(line: str) -> str:
    """Returns a Penn Treebank tokenised line as running text, e.g. `I do n't know .` -> `I don't know.`."""
    text = " ".join(line.split()).replace("``", '"').replace("''", '"')
    text = _CONTRACTION.sub(r"\1", text)
    text = _PAIR.sub(r'\1"\2"', text)
    text = _OPENING.sub(r"\1", text)
    previous = None
    while previous != text:  # a mark may follow a mark: `etc . ) .`
        previous, text = text, _CLOSING.sub(r"\1", text)
    return re.sub(r"(?<=\w) / (?=\w)", "/", text)
