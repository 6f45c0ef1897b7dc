"""English in the Penn Treebank convention ("do n't", "`` word ''"), which published correction data follow.

sacremoses' detokeniser follows the Moses convention and leaves "do n't" in two pieces.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_CONTRACTION = re.compile(r"(?<=\w) (n't|'s|'re|'ve|'ll|'d|'m)(?!\w)", re.IGNORECASE)
_CLOSING = re.compile(r" ([,.;:!?%)\]}]|\.\.\.)(?=\s|$|[\"'.,)])")
_OPENING = re.compile(r"([(\[{$#]) (?=\S)")
_PAIR = re.compile(r'(^|\s)" (.*?) "(?=\s|$|[,.;:!?)])')


def detokenise(line: str) -> str:
    """A line in Penn Treebank tokens as running text: `I do n't know .` becomes `I don't know.`."""
    text = " ".join(line.split()).replace("``", '"').replace("''", '"')
    text = _CONTRACTION.sub(r"\1", text)
    text = _PAIR.sub(r'\1"\2"', text)
    text = _OPENING.sub(r"\1", text)
    previous = None
    while previous != text:  # a mark can follow a mark: `etc . ) .`
        previous, text = text, _CLOSING.sub(r"\1", text)
    return re.sub(r"(?<=\w) / (?=\w)", "/", text)


def tokenise(text: str) -> str:
    """Running text in Penn Treebank tokens, but with its own quotation marks: `I don't know.` -> `I do n't know .`."""
    return " ".join(text[start:end] for start, end in _tokeniser().span_tokenize(text))


@cache
def _tokeniser() -> Any:
    from nltk.tokenize import NLTKWordTokenizer  # slow to import

    return NLTKWordTokenizer()
