"""A sentence in which edits make errors, in place and each word at most once."""

import re
from collections.abc import Container, Iterator, Sequence
from random import Random
from typing import TypeVar

from experiments.chance import pick

from fairseq_aggdec.text.characters import PUNCTUATION, READ

from .lexicon import Lexicon

_UNREAD = rf"[^\s{re.escape(''.join([*READ, *PUNCTUATION]))}\u00c0-\u024f]"
_HAS_UNREAD = re.compile(_UNREAD)
_PIECE = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\s+|\d+(?:[.,:]\d+)*|.", re.DOTALL)
_UNREAD_OR_PIECE = re.compile(rf"\s*\S*{_UNREAD}\S*\s*|{_PIECE.pattern}", re.DOTALL)

_Option = TypeVar("_Option")


class NoPlaceError(Exception):
    """A sentence, or a word, has no place for an error."""


def draw(options: Sequence[_Option], rng: Random) -> _Option:
    """One of the options, all equally likely; raises `NoPlaceError`, and draws nothing, where there are none."""
    if not options:
        raise NoPlaceError
    return pick(options, rng)


def capitalised(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


class Sentence:
    """Words, spaces and punctuation of one line, which `text` joins again exactly.

    A place is the index of a word. Edits replace pieces by strings and never change their count, so that places stay
    valid. A word with a character that no corrector reads (Москва, [3], a_b, an emoji) is one piece with the spaces
    around it, and is never edited.
    """

    def __init__(
        self,
        text: str,
        lexicon: Lexicon,
        rng: Random,
    ) -> None:
        self.lexicon = lexicon
        self.rng = rng
        """the source of all choices"""
        has_unread = _HAS_UNREAD.search(text)
        pattern = _UNREAD_OR_PIECE if has_unread else _PIECE
        self.pieces: list[str] = pattern.findall(text)
        self.word_positions = [
            position
            for position, piece in enumerate(self.pieces)
            if piece[0].isalpha() and not (has_unread and _HAS_UNREAD.search(piece))
        ]
        """where in `pieces` the word of each place is"""
        self.low = [self.pieces[position].lower() for position in self.word_positions]
        """the words in lower case, as they were before any edit"""
        self.free = [True] * len(self.word_positions)
        """whether no edit has changed the word yet"""

    def text(self) -> str:
        """The sentence as edited."""
        return "".join(self.pieces)

    def draw(self, options: Sequence[_Option]) -> _Option:
        """`draw` by the sentence's random generator."""
        return draw(options, self.rng)

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return self.rng.random() < share

    def word(self, place: int) -> str:
        """The word at a place, as it is now."""
        return self.pieces[self.word_positions[place]]

    def before(self, place: int) -> str:
        """The word before a place, in lower case; "" at the sentence's beginning."""
        return self.low[place - 1] if place > 0 else ""

    def places(self, words: Container[str] | None = None) -> list[int]:
        """The words that are free and, in lower case, among `words`; None: all that are free."""
        return [
            place
            for place, word in enumerate(self.low)
            if self.free[place] and (words is None or word in words)
        ]

    def common(self, words: Container[str]) -> list[int]:
        """`places` without names: words with a capital within the sentence."""
        return [
            place
            for place in self.places(words)
            if place == 0 or self.word(place).islower()
        ]

    def pairs(
        self,
        words: Container[str] | None = None,
        first: int = 0,
    ) -> list[int]:
        """The `places` from word `first` on that have the next word, also free, after a single space."""
        return [
            place
            for place in self.places(words)
            if place >= first and self.adjacent(place)
        ]

    def adjacent(self, place: int) -> bool:
        """Whether this word and the next are free and have a single space between them."""
        return self.spaced(place) and self.free[place] and self.free[place + 1]

    def spaced(self, place: int) -> bool:
        """Whether this word has a next one after a single space."""
        if not 0 <= place < len(self.word_positions) - 1:
            return False
        space = self.word_positions[place] + 1
        return self.word_positions[place + 1] == space + 1 and self.pieces[space] == " "

    def inner(self) -> Iterator[tuple[int, str, str, str]]:
        """Every piece but the first and last: its position, the piece before, it, and the piece after."""
        for position in range(1, len(self.pieces) - 1):
            before, piece, after = self.pieces[position - 1 : position + 2]
            yield position, before, piece, after

    def write(self, place: int, text: str) -> None:
        """Writes `text`, as it is, in place of a word."""
        self.pieces[self.word_positions[place]] = text
        self.free[place] = False

    def replace(self, place: int, word: str) -> None:
        """Writes another word (in lower case), capitalised like the one that was there."""
        old = self.word(place)
        # a single capital ("I", "A") does not mean that a longer word within the sentence has one
        is_letter = len(old) == 1
        if not old[0].isupper() or (is_letter and place > 0):
            self.write(place, word)
        elif old.isupper() and not is_letter:
            self.write(place, word.upper())
        else:
            self.write(place, capitalised(word))

    def insert_before(self, place: int, word: str) -> None:
        """Inserts a word before a place; at the start of the sentence it gets the capital."""
        old = self.word(place)
        if place == 0 and old[0].isupper() and not old.isupper():
            word = capitalised(word)
            old = old[0].lower() + old[1:]
        self.write(place, f"{word} {old}")

    def delete_word(self, place: int) -> None:
        """Removes a word and a space beside it; at the start of the sentence the next word gets the capital."""
        if place == 0 and self.word(0)[0].isupper() and len(self.word_positions) > 1:
            self.pieces[self.word_positions[1]] = capitalised(self.word(1))
        self.write(place, "")
        position = self.word_positions[place]
        after = position + 1
        if self.pieces[after : after + 1] == [" "]:
            self.pieces[after] = ""
        elif position > 0:
            self.delete_mark(position)

    def delete_mark(self, position: int) -> None:
        """Removes a piece that is a punctuation mark, and a space before it."""
        self.pieces[position] = ""
        if self.pieces[position - 1] == " ":
            self.pieces[position - 1] = ""
