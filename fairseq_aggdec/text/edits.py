"""The edits between a text and its correction, with their places."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairseq_aggdec.text.results import Edit, Result, Sentence
from fairseq_aggdec.text.spacing import aligned, common_start

# accents and what emoji are joined by: they go with the character before them
_MARK = "\u0300-\u036f\u200d\ufe0f"
_WORD = rf"\w[\w{_MARK}]*"
_TOKEN = re.compile(
    rf"[\u3040-\u30ff\u3400-\u9fff]|{_WORD}(?:['’-]{_WORD})*|[^\w\s][{_MARK}]*"
)
"""a character of Chinese or Japanese, a word, or another character; white space is between them"""


class _Token(NamedTuple):
    text: str
    start: int
    """in characters of the whole text"""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def find_edits(source: str, output: str) -> list[Edit]:
    """The edits that turn the source into the output, in order; an edit replaces whole words and punctuation marks."""
    old = _tokens(source)
    new = _tokens(output)
    # up to where source and output are compared
    old_place = new_place = 0
    edits: list[Edit] = []
    counterparts = [*_counterparts(old, new)]
    ends = _end(source), _end(output)
    for was, now in [*counterparts, ends]:
        # what is before the counterparts, then these
        old_gap = source[old_place : was.start]
        new_gap = output[new_place : now.start]
        edits += _edit(old_gap, new_gap, old_place)
        edits += _edit(was.text, now.text, was.start)
        old_place = was.end
        new_place = now.end
    return edits


def _tokens(text: str) -> list[_Token]:
    return [_Token(match[0], match.start()) for match in _TOKEN.finditer(text)]


def _end(text: str) -> _Token:
    return _Token("", len(text))


def _counterparts(
    old: Sequence[_Token], new: Sequence[_Token]
) -> Iterator[tuple[_Token, _Token]]:
    """Equal tokens, and tokens of a replacement by as many tokens."""
    old_texts = [token.text for token in old]
    new_texts = [token.text for token in new]
    for _, olds, news in aligned(old_texts, new_texts):
        if len(olds) == len(news):
            for i, j in zip(olds, news, strict=True):
                yield old[i], new[j]


def _edit(was: str, now: str, offset: int) -> list[Edit]:
    """The edit from one text to the other, without white space that both begin or end with; [] if they are equal."""
    if was == now:
        return []
    first = _common_space(was, now)
    was = was[first:]
    now = now[first:]
    last = _common_space(was[::-1], now[::-1])
    edit = Edit(
        offset=offset + first,
        length=len(was) - last,
        replacement=now[: len(now) - last],
    )
    return [edit]


def _common_space(one: str, other: str) -> int:
    """How many characters of white space both begin with."""
    start = one[: common_start(one, other)]
    return len(start) - len(start.lstrip())


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """Apply all edits to the source; they are in order and do not overlap."""
    parts = []
    end = 0
    for edit in edits:
        parts.append(source[end : edit.offset])
        parts.append(edit.replacement)
        end = edit.end
    parts.append(source[end:])
    return "".join(parts)


PLAIN_MARKS = (("[-", "-]"), ("{+", "+}"))
COLOURED_MARKS = (("\033[31;9m", "\033[0m"), ("\033[32m", "\033[0m"))
"""what stands around text that was taken out, and around text that was put in: as in git's --word-diff, or in colour"""


def marked(result: Result, marks: Sequence[tuple[str, str]] = PLAIN_MARKS) -> str:
    """A correction as one text, in which what was taken out and what was put in are marked."""
    taken_out, put_in = marks
    edits = []
    for edit in result.edits:
        old = result.source[edit.offset : edit.end]
        new = edit.replacement
        shown = (old and old.join(taken_out)) + (new and new.join(put_in))
        edits.append(replace(edit, replacement=shown))
    return apply_edits(result.source, edits)


def edits_of(sentences: Sequence[Sentence]) -> list[Edit]:
    """The edits of a corrected text, by its sentences."""
    return [
        replace(edit, offset=edit.offset + sentence.start)
        for sentence in sentences
        for edit in find_edits(sentence.source, sentence.text)
    ]


def result_of(
    source: str, sentences: list[Sentence], edits: list[Edit] | None
) -> Result:
    """Join the results of a text's sentences. `edits` are those of a correction; None: the text is translated."""
    changes = edits
    if changes is None:
        changes = [Edit(one.start, one.end - one.start, one.text) for one in sentences]
    text = apply_edits(source, changes)
    return Result(source, text, sentences, edits or [])


def widened(source: str, edits: Sequence[Edit]) -> list[Edit]:
    """Extend each insertion to a word beside it, so that no edit has length 0; the corrected text stays the same.

    Edits that then overlap are merged. An insertion into a text of white space alone is dropped.
    """
    tokens = _tokens(source)
    groups: list[tuple[range, list[Edit]]] = []
    for edit in edits:
        if edit.length:
            span = range(edit.offset, edit.end)
        elif tokens:
            span = _beside(tokens, edit)
        else:
            continue
        parts = [edit]
        # one that overlaps the group before belongs to it
        if groups and span.start < groups[-1][0].stop:
            before, others = groups.pop()
            end = max(before.stop, span.stop)
            span = range(before.start, end)
            parts = [*others, edit]
        groups.append((span, parts))
    return [_merged(source, span, parts) for span, parts in groups]


def _merged(source: str, span: range, edits: list[Edit]) -> Edit:
    """One edit of a part of the source that does what several do."""
    old = source[span.start : span.stop]
    inside = [replace(edit, offset=edit.offset - span.start) for edit in edits]
    return Edit(span.start, len(span), apply_edits(old, inside))


def _beside(tokens: list[_Token], insertion: Edit) -> range:
    """The characters from an insertion over a token beside it."""
    place = insertion.offset
    following = bisect_left(tokens, place, key=lambda token: token.start)
    before = tokens[following - 1] if following else None
    after = tokens[following] if following < len(tokens) else None
    belongs_to_next = (
        after is not None
        and after.start == place
        and insertion.replacement[-1:].isspace()
    )
    if before is not None and before.end >= place and not belongs_to_next:
        return range(before.start, before.end)
    if after is not None:
        return range(place, after.end)
    assert before is not None
    return range(before.start, place)


def to_utf16(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Convert offsets and lengths to UTF-16 code units, as JavaScript and LanguageTool count."""
    result = []
    offset = place = 0
    for edit in edits:
        offset += utf16_units(text[place : edit.offset])
        place = edit.offset
        length = utf16_units(text[edit.offset : edit.end])
        result.append(Edit(offset, length, edit.replacement))
    return result


def utf16_units(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
