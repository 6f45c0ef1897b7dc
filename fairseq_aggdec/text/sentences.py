"""Where the sentences of a pasted text are, and where a sentence that is too long for a model can be cut."""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate

from sentencex import segment

Span = tuple[int, int]
"""start and end, in characters of a text"""

_LIST_ITEM = re.compile(r"\s*\w{1,2}[.)]\s")
_LIST_MARKER = re.compile(r"\(?(?:\d{1,3}|\w)[.)]")
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_LANGUAGES_WITH_ORDINALS = "cs da de et fi hr hu lv nb nn no pl sk sl sr".split()
_MARKER = re.compile(r"(?:(?:[>#*+•|–—-]+|\d{1,3}[.)]|\(?[a-z][.)])\s+)+")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[^\n]*$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"(?<!\S)[^\w\s]*(\w+(?:-+\w+)*)[^\w\s]*(?!\S)")
_WINDOW = 4096
"""characters that sentencex reads at once: its time grows with their square, and no other thread runs meanwhile. A
quotation that is longer than half a window may be cut"""
_CUTS = (  # where a long sentence is cut: best first. White space is the last resort.
    re.compile(r"(?<=[.!?…;:])[\"'”’»)\]]*(\s+)|(?<!\s)(\s+)(?=[-–—]\s)"),
    re.compile(r"(?<=,)[\"'”’»)\]]*(\s+)"),
    re.compile(r"(\s+)"),
)


def split_text(text: str, language: str = "en", markers: bool = True) -> list[Span]:
    """Find the sentences of a text: spans (start, end) of characters, in order.

    No span holds white space between sentences, text without words, or fenced code: these are not decoded.

    A line break ends a sentence, except within a paragraph that a mail program or an editor has wrapped: there the line
    break is part of the sentence.

    Args:
        language: its ISO code; for an unknown code the fallback rules of sentencex hold.
        markers: whether the marks of lists, quotations and titles (`-`, `1.`, `>`, `#`) belong to their sentences. A
            corrector reads them; a translator would translate them.
    """
    fences = (found.span() for found in _FENCE.finditer(text))
    fence = (0, 0)
    spans = []
    for block, end in _blocks(text):
        start = block
        if text[start:end].isspace():
            continue
        line = re.sub(r"\s", " ", text[start:end])
        # sentencex takes no halves of characters (JSON has them)
        line = re.sub("[\ud800-\udfff]", "\ufffd", line)
        for piece in _pieces(line, language):
            words = piece.strip()
            begin = start + len(piece) - len(piece.lstrip())
            if not markers and start == block and (marker := _MARKER.match(words)):
                words = words[marker.end() :]
                begin += marker.end()
            while fence[1] <= begin:
                fence = next(fences, (len(text) + 1, len(text) + 1))
            if has_words(words) and begin < fence[0]:
                spans.append((begin, begin + len(words)))
            start += len(piece)
    return spans


def has_words(text: str) -> bool:
    """Whether a text has a word of letters, signs around it aside; a URL is no word."""
    return any(
        word.replace("-", "").isalpha()
        for word in _WORD.findall(re.sub("['’]", "", text))
    )


def _blocks(text: str) -> Iterator[Span]:
    """Spans of the lines of a text; the lines of a wrapped paragraph are one span."""
    start = end = 0
    before = ""
    for line in text.splitlines(keepends=True):
        # Markdown's line break
        if before.rstrip("\r\n").endswith("  ") or not _is_wrapped(
            before.strip(), line
        ):
            yield start, end
            start = end
        end += len(line)
        before = line
    yield start, end


def _is_wrapped(line: str, following: str) -> bool:
    """Whether a line was wrapped: 30 to 100 characters, no sentence end, and the next line begins in lower case."""
    return (
        30 <= len(line) <= 100
        and line[-1] not in ".!?…:;"
        and following.lstrip()[:1].islower()
        and not _LIST_ITEM.match(following)
    )


def _pieces(line: str, language: str) -> list[str]:
    """Cut a line into sentences with the white space around them; joined, they give the line."""
    pieces: list[str] = []
    for piece in _segments(line, language):
        if pieces and (
            _is_punctuation(piece) or _is_unfinished(pieces[-1].strip(), language)
        ):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def _segments(line: str, language: str) -> list[str]:
    """Segment a line by sentencex, window by window; joined, the segments give the line."""
    found = [""]
    start = 0
    while start < len(line):
        window = line[start : start + _WINDOW]
        pieces = segment(language, window)
        if "".join(pieces) != window:
            pieces = [window]
        if start + len(window) < len(line):
            if len(pieces) == 1:  # which the window cuts
                pieces = [window[: window.rfind(" ") + 1 or _WINDOW]]
            else:  # a quotation may end after it: only the first half is sure
                ends = accumulate(map(len, pieces))
                sure = [
                    piece
                    for piece, end in zip(pieces, ends, strict=True)
                    if 2 * end <= _WINDOW
                ]
                pieces = [*(sure or pieces[:1]), ""]
        found[-1] += pieces[0]
        found += pieces[1:]
        start += sum(map(len, pieces))
    return found


def _is_punctuation(piece: str) -> bool:
    return not any(character.isalnum() for character in piece)


def _is_unfinished(piece: str, language: str) -> bool:
    """Whether sentencex mistook the full stop of a list number, or of "19. Jahrhundert", for a sentence's end."""
    ordinal = language in _LANGUAGES_WITH_ORDINALS and _ORDINAL.search(piece)
    return _is_punctuation(piece) or bool(ordinal or _LIST_MARKER.fullmatch(piece))


def cut_at_clauses(sentence: str, fits: Callable[[str], bool]) -> list[Span]:
    """Cut a sentence into parts that fit; returns their spans, between which is only white space.

    Halves the sentence until its parts fit: after the end of a sentence or clause that is nearest the middle, else
    after the nearest comma, else at the nearest white space. A word that does not fit is a part by itself.
    """
    parts: list[Span] = []
    waiting = [(0, len(sentence))]
    while waiting:
        start, end = waiting.pop()
        cut = None if fits(sentence[start:end]) else _cut(sentence, start, end)
        if cut is None:
            parts.append((start, end))
        else:
            waiting += [(cut[1], end), (start, cut[0])]
    return parts


def _cut(sentence: str, start: int, end: int) -> Span | None:
    """The span of white space at which to cut a part, with marks near its ends ignored; None if there is none."""
    part = sentence[start:end]
    for pattern in _CUTS:
        gaps = [found.span(found.lastindex or 0) for found in pattern.finditer(part)]
        margin = 0 if pattern is _CUTS[-1] else len(part) // 5
        gaps = [
            gap for gap in gaps if margin <= gap[0] and gap[1] <= len(part) - margin
        ]
        if gaps:
            first, last = min(gaps, key=lambda gap: abs(gap[0] + gap[1] - len(part)))
            return start + first, start + last
    return None
