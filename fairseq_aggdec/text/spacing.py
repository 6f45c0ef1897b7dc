"""The spacing of a correction: where the source's tokens were kept, its characters and white space come back."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from operator import and_, eq

from fairseq_aggdec.text.characters import PUNCTUATION

_EQUAL = {
    written: typed.strip()
    for written, typed in PUNCTUATION.items()
    if typed and written not in "`´"
}
"""a word processor's punctuation: a model that reads a keyboard's has kept it"""
_UNSEEN = "".join(written for written, typed in PUNCTUATION.items() if not typed)
"""characters of no width: they count as white space, and inside a word they do not count"""
_ARTEFACTS = {
    " @-@ ": "-",
    **{f" {character} ": character for character in _UNSEEN},
    "&apos;": "'",
    "&quot;": '"',
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",  # the last, as Moses escapes it first
}
"""Moses' replacement of a character, and the character"""
# Latin to Arabic; Moses splits between others
_LETTER = r"[^\W_²³¹¼-¾\u0860-\u1dff\u2000-\U0010ffff]"
_TOKEN = rf"{_LETTER}+(?:[{_UNSEEN}]+{_LETTER}+)*|[^\s{_UNSEEN}]"


@dataclass
class _Token:
    """A word, or another character that is seen.

    Attributes:
        gap: the white space before it.
        written: its characters.
        key: what tokens that count as equal have in common; "" for the end of the text.
    """

    gap: str
    written: str
    key: str

    @property
    def is_word(self) -> bool:
        return self.key.isalnum()


def _cut(text: str, pattern: str) -> list[_Token]:
    tokens = []
    end = 0
    for match in re.finditer(pattern, text):
        key = re.sub(f"[{_UNSEEN}]", "", match[0])
        tokens.append(_Token(text[end : match.start()], match[0], _EQUAL.get(key, key)))
        end = match.end()
    return [*tokens, _Token(text[end:], "", "")]


def common_start(old: Sequence[str], new: Sequence[str]) -> int:
    """How many tokens, or characters, both begin with."""
    return sum(takewhile(bool, map(eq, old, new)))


def aligned(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[str, range, range]]:
    """How difflib turns one list of tokens into another; their common beginning and end are kept.

    Each step is (`equal`, `replace`, `delete` or `insert`, indices of old tokens, indices of new tokens).
    """
    first = common_start(old, new)
    last = common_start(old[first:][::-1], new[first:][::-1])
    if first:
        yield "equal", range(first), range(first)
    old_end = len(old) - last
    new_end = len(new) - last
    inner = SequenceMatcher(
        None, old[first:old_end], new[first:new_end], autojunk=False
    )
    for kind, i1, i2, j1, j2 in inner.get_opcodes():
        yield kind, range(first + i1, first + i2), range(first + j1, first + j2)
    if last:
        yield "equal", range(old_end, len(old)), range(new_end, len(new))


def match_spacing(source: str, output: str) -> str:
    """A correction with the source's characters and white space wherever tokens were kept.

    The output's spacing, a detokeniser's, counts only beside what is new. Quotes, dashes and ellipses of a word
    processor count as kept where the output has the keyboard's; capital and small letters are different.

    Args:
        source: a text.
        output: its correction, after detokenisation.

    Returns:
        The output, changed only in its white space and in the form of its punctuation, without white space around it;
        the source, if all its tokens were kept and none is new.
    """
    source = source.strip()
    output = output.strip()
    for artefact, character in _ARTEFACTS.items():
        if artefact not in source:
            output = output.replace(artefact, character)
    pattern = rf"\.\.\.|{_TOKEN}" if "…" in source else _TOKEN
    old = _cut(source, pattern)
    new = _cut(output, pattern)
    decided = 0  # how many new tokens have their gaps
    steps = aligned([token.key for token in old], [token.key for token in new])
    for kind, olds, news in steps:
        if kind == "equal":
            for i, j in zip(olds, news, strict=True):
                new[j].written = old[i].written
                if j >= decided:
                    new[j].gap = old[i].gap
            continue
        # the last of both is the kept token after them
        was = old[olds.start : olds.stop + 1]
        now = new[news.start : news.stop + 1]
        if kind == "insert":
            _space_insertion(was[0].gap, now)
        elif kind == "delete":
            before = new[news.start - 1] if news.start else None
            now[0].gap = _gap_of_deletion(before, was, now[0])
        else:
            _space_replacement(was, now)
        decided = news.stop + 1
    return "".join(token.gap + token.written for token in new)


def _space_insertion(gap: str, new: list[_Token]) -> None:
    """Put the source's gap on one side of new tokens; the last of the list is the kept token after them."""
    # a space before punctuation is its writer's
    if new[-1].key and not new[-1].is_word and gap:
        new[-1].gap = gap
        return
    for token in reversed(new):
        if token.gap:
            token.gap = gap or token.gap
            return


def _gap_of_deletion(
    before: _Token | None, deleted: list[_Token], after: _Token
) -> str:
    """The one gap that is left by deleted tokens; the last of their list is the kept token after them."""
    left = deleted[0].gap
    right = deleted[-1].gap
    if after.key and not after.is_word and deleted[-2].is_word:
        return right
    if before and not before.is_word and deleted[0].is_word:
        return left
    if not after.gap:
        return min(left, right, key=len)
    if left or right:
        return max(left, right, key=lambda gap: ("\n" in gap, len(gap)))
    return " " if before and before.is_word and after.is_word else ""


def _space_replacement(old: list[_Token], new: list[_Token]) -> None:
    """Put the source's gaps around new tokens; the last of both lists is the kept token after them.

    Equally many are counterparts, otherwise the first and the last are: a word of a word, punctuation of punctuation.
    """
    if len(old) == len(new):
        pairs = list(zip(old, new, strict=True))
        alike = [was.is_word == now.is_word for was, now in pairs]
        # a gap is kept between two tokens that are
        keeps = [alike[0], *map(and_, alike, alike[1:])]
    else:
        pairs = [(old[0], new[0]), (old[-1], new[-1])]
        keeps = [
            old[0].is_word == new[0].is_word,
            old[-2].is_word == new[-2].is_word,
        ]
    for (was, now), is_kept in zip(pairs, keeps, strict=True):
        if is_kept:
            now.gap = was.gap
        elif now.gap:
            now.gap = was.gap or now.gap
