"""A sentence that edits change in place, each word at most once."""

from __future__ import annotations

import re

from fairseq_aggdec.text.characters import PUNCTUATION, READ

_UNREAD = rf"[^\s{re.escape(''.join([*READ, *PUNCTUATION]))}\u00c0-\u024f]"
_HAS_UNREAD = re.compile(_UNREAD)
_PIECE = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\s+|\d+(?:[.,:]\d+)*|.", re.DOTALL)
_UNREAD_OR_PIECE = re.compile(rf"\s*\S*{_UNREAD}\S*\s*|{_PIECE.pattern}", re.DOTALL)


def match_case(model: str, word: str) -> str:
    """`word` capitalised like `model`: its first letter, all letters, or none."""
    if not word or not model[:1].isupper():
        return word
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[0].upper() + word[1:]


class Sentence:
    """Words, spaces and punctuation of one line; ``text()`` joins them again exactly.

    Edits replace pieces by strings and never change their number, so that positions stay valid. A word with a character
    that no corrector reads (Москва, [3], a_b, an emoji) is one piece with the spaces around it, and is never edited.
    """

    __slots__ = ("free", "low", "pieces", "words")

    def __init__(self, text: str) -> None:
        has_unread = _HAS_UNREAD.search(text) is not None
        self.pieces: list[str] = (_UNREAD_OR_PIECE if has_unread else _PIECE).findall(
            text
        )
        self.words: list[int] = [
            i
            for i, piece in enumerate(self.pieces)
            if piece[0].isalpha() and not (has_unread and _HAS_UNREAD.search(piece))
        ]
        """positions of the words in `pieces`"""
        self.low: list[str] = [self.pieces[i].lower() for i in self.words]
        """the words in lower case, as they were before any edit"""
        self.free: list[bool] = [True] * len(self.words)
        """whether no edit has changed the word yet"""

    def text(self) -> str:
        """The sentence as edited."""
        return "".join(self.pieces)

    def word(self, k: int) -> str:
        """The k-th word as it is now."""
        return self.pieces[self.words[k]]

    def adjacent(self, k: int) -> bool:
        """Whether words k and k+1 exist, are unchanged, and have a single space between them."""
        if k < 0 or k + 1 >= len(self.words) or not (self.free[k] and self.free[k + 1]):
            return False
        here = self.words[k]
        return self.words[k + 1] == here + 2 and self.pieces[here + 1] == " "

    def after_space(self, k: int) -> bool:
        """Whether there is nothing but a space between word k and the word before."""
        here = self.words[k]
        return k > 0 and self.words[k - 1] == here - 2 and self.pieces[here - 1] == " "

    def replace(self, k: int, word: str) -> None:
        """Replaces word k by `word` (in lower case), capitalised like word k."""
        position = self.words[k]
        old = self.pieces[position]
        # a single capital ("I", "A") does not mean that a longer word within the sentence has one
        self.pieces[position] = (
            word
            if len(old) == 1 and k > 0
            else match_case(old if len(old) > 1 else old + "x", word)
        )
        self.free[k] = False

    def insert_before(self, k: int, word: str) -> None:
        """Inserts `word` before word k; at the start of the sentence it gets the capital."""
        position = self.words[k]
        old = self.pieces[position]
        if k == 0 and old[0].isupper() and not old.isupper():
            self.pieces[position] = (
                word[0].upper() + word[1:] + " " + old[0].lower() + old[1:]
            )
        else:
            self.pieces[position] = word + " " + old
        self.free[k] = False

    def delete(self, k: int) -> None:
        """Removes word k and a space beside it; at the start of the sentence the next word gets the capital."""
        position = self.words[k]
        pieces = self.pieces
        if k == 0 and pieces[position][0].isupper() and len(self.words) > 1:
            after = self.words[1]
            pieces[after] = pieces[after][:1].upper() + pieces[after][1:]
        pieces[position] = ""
        if position + 1 < len(pieces) and pieces[position + 1] == " ":
            pieces[position + 1] = ""
        elif position > 0 and pieces[position - 1] == " ":
            pieces[position - 1] = ""
        self.free[k] = False
