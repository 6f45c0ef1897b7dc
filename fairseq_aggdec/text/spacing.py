"""The spacing of a correction: where the source's tokens were kept, its own characters and white space come back."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq

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
    tokens, end = [], 0
    for match in re.finditer(pattern, text):
        key = re.sub(f"[{_UNSEEN}]", "", match[0])
        tokens.append(_Token(text[end : match.start()], match[0], _EQUAL.get(key, key)))
        end = match.end()
    return [*tokens, _Token(text[end:], "", "")]


def common_start(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of tokens, or characters, that both begin with."""
    return sum(takewhile(bool, map(eq, old, new)))


def aligned(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """The opcodes of difflib that turn one list of tokens into another; their common beginning and end are kept."""
    first = common_start(old, new)
    last = common_start(old[first:][::-1], new[first:][::-1])
    if first:
        yield "equal", 0, first, 0, first
    inner = SequenceMatcher(
        None, old[first : len(old) - last], new[first : len(new) - last], autojunk=False
    )
    for kind, i1, i2, j1, j2 in inner.get_opcodes():
        yield kind, i1 + first, i2 + first, j1 + first, j2 + first
    if last:
        yield "equal", len(old) - last, len(old), len(new) - last, len(new)


def match_spacing(source: str, output: str) -> str:
    """A correction with the source's characters and white space wherever tokens were kept.

    The output's own spacing, a detokeniser's, counts only beside what is new. Quotes, dashes and ellipses of a word
    processor count as kept where the output has the keyboard's; capital and small letters are different.

    Args:
        source: a text.
        output: its correction, after detokenisation.

    Returns:
        The output, changed only in its white space and in the form of its punctuation, without white space around it;
        the source, if all its tokens were kept and none is new.
    """
    source, output = source.strip(), output.strip()
    for artefact, character in _ARTEFACTS.items():
        if artefact not in source:
            output = output.replace(artefact, character)
    pattern = rf"\.\.\.|{_TOKEN}" if "…" in source else _TOKEN
    old, new = _cut(source, pattern), _cut(output, pattern)
    place = 0  # up to where the gaps are decided
    for kind, i1, i2, j1, j2 in aligned(
        [token.key for token in old], [token.key for token in new]
    ):
        if kind == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                new[j].written = old[i].written
                if j >= place:
                    new[j].gap = old[i].gap
            continue
        place = j2 + 1
        if kind == "insert":
            _space_insertion(old[i1].gap, new[j1 : j2 + 1])
        elif kind == "delete":
            new[j1].gap = _gap_of_deletion(
                new[j1 - 1] if j1 else None, old[i1 : i2 + 1], new[j1]
            )
        else:
            _space_replacement(old[i1 : i2 + 1], new[j1 : j2 + 1])
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
    left, right = deleted[0].gap, deleted[-1].gap
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
    pairs = (
        list(zip(old, new, strict=True))
        if len(old) == len(new)
        else [(old[0], new[0]), (old[-1], new[-1])]
    )
    alike = [was.is_word == now.is_word for was, now in pairs]
    if len(old) != len(new):
        alike[1] = old[-2].is_word == new[-2].is_word
    for number, (was, now) in enumerate(pairs):
        beside = alike[number] and (
            number == 0 or len(old) != len(new) or alike[number - 1]
        )
        if beside or now.gap:
            now.gap = was.gap if beside else was.gap or now.gap
