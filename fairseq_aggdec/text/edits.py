"""The edits between a text and its correction, with their places."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairseq_aggdec.text.results import Edit, Result, Sentence
from fairseq_aggdec.text.spacing import aligned, common_start

# accents and what emoji are joined by: they go with the character before them
_MARK = "\u0300-\u036f\u200d\ufe0f"
_WORD = rf"\w[\w{_MARK}]*"
_TOKEN = re.compile(
    rf"[\u3040-\u30ff\u3400-\u9fff]|{_WORD}(?:['’-]{_WORD})*|[^\w\s][{_MARK}]*"
)
"""a character of Chinese or Japanese, a word, or another character; white space is between them"""


def find_edits(source: str, output: str) -> list[Edit]:
    """The edits that turn the source into the output, in order; an edit replaces whole words and punctuation marks."""
    old, new = list(_TOKEN.finditer(source)), list(_TOKEN.finditer(output))
    edits: list[Edit] = []
    start, begin = 0, 0  # up to where source and output are compared
    for i, j in [*_counterparts(old, new), (len(old), len(new))]:
        i1, i2 = old[i].span() if i < len(old) else (len(source), len(source))
        j1, j2 = new[j].span() if j < len(new) else (len(output), len(output))
        edits += _edit(source[start:i1], output[begin:j1], start)
        edits += _edit(source[i1:i2], output[j1:j2], i1)
        start, begin = i2, j2
    return edits


def _counterparts(
    old: list[re.Match[str]], new: list[re.Match[str]]
) -> Iterator[tuple[int, int]]:
    """Pairs of token numbers (old, new): equal tokens, and tokens of a replacement by the same number of tokens."""
    for _, i1, i2, j1, j2 in aligned(
        [match[0] for match in old], [match[0] for match in new]
    ):
        if i2 - i1 == j2 - j1:
            yield from zip(range(i1, i2), range(j1, j2), strict=True)


def _edit(was: str, now: str, offset: int) -> list[Edit]:
    """The edit from one text to the other, without white space that both begin or end with; [] if they are equal."""
    if was == now:
        return []
    begin = was[: common_start(was, now)]
    first = len(begin) - len(begin.lstrip())
    back, back_now = was[first:][::-1], now[first:][::-1]
    end = back[: common_start(back, back_now)]
    last = len(end) - len(end.lstrip())
    return [Edit(offset + first, len(was) - first - last, now[first : len(now) - last])]


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """Apply all edits to the source; they are in order and do not overlap."""
    parts, end = [], 0
    for edit in edits:
        parts += [source[end : edit.offset], edit.replacement]
        end = edit.end
    return "".join([*parts, source[end:]])


PLAIN_MARKS = (("[-", "-]"), ("{+", "+}"))
COLOURED_MARKS = (("\033[31;9m", "\033[0m"), ("\033[32m", "\033[0m"))
"""what stands around text that was taken out, and around text that was put in: as in git's --word-diff, or in colour"""


def marked(result: Result, marks: Sequence[tuple[str, str]] = PLAIN_MARKS) -> str:
    """A correction as one text, in which what was taken out and what was put in are marked."""
    edits = []
    for edit in result.edits:
        texts = (result.source[edit.offset : edit.end], edit.replacement)
        shown = [
            text and text.join(around)
            for text, around in zip(texts, marks, strict=True)
        ]
        edits.append(replace(edit, replacement="".join(shown)))
    return apply_edits(result.source, edits)


def result_of(
    source: str, sentences: list[Sentence], edits: list[Edit] | None
) -> Result:
    """Join the results of a text's sentences. `edits` are those of a correction; None: the text is translated."""
    made = (
        [Edit(one.start, one.end - one.start, one.text) for one in sentences]
        if edits is None
        else edits
    )
    return Result(source, apply_edits(source, made), sentences, edits or [])


def widened(source: str, edits: Sequence[Edit]) -> list[Edit]:
    """Extend each insertion to a word beside it, so that no edit has length 0; the corrected text stays the same.

    Edits that then overlap are merged. An insertion into a text of white space alone is dropped.
    """
    tokens = [match.span() for match in _TOKEN.finditer(source)]
    spans: list[tuple[int, int, list[Edit]]] = []
    for edit in edits:
        start, end, parts = edit.offset, edit.end, [edit]
        if not edit.length:
            if not tokens:
                continue
            start, end = _beside(tokens, edit)
        if spans and start < spans[-1][1]:
            start, last, before = spans.pop()
            end, parts = max(last, end), [*before, edit]
        spans.append((start, end, parts))
    wide = []
    for start, end, parts in spans:
        inside = [replace(part, offset=part.offset - start) for part in parts]
        wide.append(Edit(start, end - start, apply_edits(source[start:end], inside)))
    return wide


def _beside(tokens: list[tuple[int, int]], insertion: Edit) -> tuple[int, int]:
    """The span (start, end) of the source from an insertion over a token beside it."""
    place = insertion.offset
    following = bisect_left(tokens, (place, place))
    touches_next = following < len(tokens) and tokens[following][0] == place
    ends_in_space = insertion.replacement[-1:].isspace()
    if (
        following
        and tokens[following - 1][1] >= place
        and not (touches_next and ends_in_space)
    ):
        return tokens[following - 1]
    if following < len(tokens):
        return place, tokens[following][1]
    return tokens[following - 1][0], place


def to_utf16(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Convert offsets and lengths to UTF-16 code units, as JavaScript and LanguageTool count."""
    result, offset, place = [], 0, 0
    for edit in edits:
        offset += utf16_units(text[place : edit.offset])
        place = edit.offset
        result.append(
            Edit(
                offset, utf16_units(text[place : place + edit.length]), edit.replacement
            )
        )
    return result


def utf16_units(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
