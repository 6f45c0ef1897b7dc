"""A sentence that edits change in place, word by word, at most once a word."""

from __future__ import annotations

import re

from fairseq_aggdec.writing.characters import PUNCTUATION, READ

_UNREAD = rf"[^\s{re.escape(''.join([*READ, *PUNCTUATION]))}\u00c0-\u024f]"
_HAS_UNREAD = re.compile(_UNREAD)
_PIECE = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\s+|\d+(?:[.,:]\d+)*|.", re.DOTALL)
_UNREAD_OR_PIECE = re.compile(rf"\s*\S*{_UNREAD}\S*\s*|{_PIECE.pattern}", re.DOTALL)


def match_case(model: str, word: str) -> str:
    """`word` with the capitalisation of `model` (its first letter, or all of it)."""
    if not word or not model[:1].isupper():
        return word
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[0].upper() + word[1:]


class Sentence:
    """Words, spaces and punctuation of one line; ``text()`` joins them again exactly.

    Edits replace pieces by strings and never change their number, so that positions stay valid. What has a character
    that no corrector reads (Москва, [3], a_b, an emoji) is one piece with the spaces around it, which no edit finds.
    """

    __slots__ = ("free", "low", "pieces", "words")

    def __init__(self, text: str) -> None:
        has_unread = _HAS_UNREAD.search(text) is not None
        self.pieces: list[str] = (_UNREAD_OR_PIECE if has_unread else _PIECE).findall(text)
        self.words: list[int] = [
            i
            for i, piece in enumerate(self.pieces)
            if piece[0].isalpha() and not (has_unread and _HAS_UNREAD.search(piece))
        ]
        """positions of the words in `pieces`"""
        self.low: list[str] = [self.pieces[i].lower() for i in self.words]
        """the words in lower case, as they were before any edit"""
        self.free: list[bool] = [True] * len(self.words)
        """words no edit has touched yet"""

    def text(self) -> str:
        """The sentence as edited."""
        return "".join(self.pieces)

    def word(self, k: int) -> str:
        """The k-th word as it stands."""
        return self.pieces[self.words[k]]

    def adjacent(self, k: int) -> bool:
        """Whether words k and k+1 exist, untouched, with a single space between them."""
        if k < 0 or k + 1 >= len(self.words) or not (self.free[k] and self.free[k + 1]):
            return False
        here = self.words[k]
        return self.words[k + 1] == here + 2 and self.pieces[here + 1] == " "

    def after_space(self, k: int) -> bool:
        """Whether only a space stands between word k and the word before it."""
        here = self.words[k]
        return k > 0 and self.words[k - 1] == here - 2 and self.pieces[here - 1] == " "

    def replace(self, k: int, word: str) -> None:
        """Puts `word` (lower case) in place of word k, with its capitalisation."""
        position = self.words[k]
        old = self.pieces[position]
        # A single capital ("I", "A") says nothing about the case of a longer word inside the sentence.
        self.pieces[position] = (
            word if len(old) == 1 and k > 0 else match_case(old if len(old) > 1 else old + "x", word)
        )
        self.free[k] = False

    def insert_before(self, k: int, word: str) -> None:
        """Puts `word` before word k; at the start of the sentence it takes over the capital."""
        position = self.words[k]
        old = self.pieces[position]
        if k == 0 and old[0].isupper() and not old.isupper():
            self.pieces[position] = word[0].upper() + word[1:] + " " + old[0].lower() + old[1:]
        else:
            self.pieces[position] = word + " " + old
        self.free[k] = False

    def delete(self, k: int) -> None:
        """Removes word k and one space beside it; the next word takes over a capital at the start."""
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
