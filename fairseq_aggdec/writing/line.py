"""A line as its writer typed it: what the corrector reads of it, and its correction in the writer's own characters.

Promised for every output of the model:

* The model reads ASCII only: letters, digits and the usual marks (`characters.READ`). A line of these is not changed.
* Punctuation of a word processor (curly quotes, dashes, an ellipsis, unusual spaces, soft hyphens) is read as that of a
  keyboard. Where the model keeps the token, the output has the writer's characters and the spaces beside them.
* Every other character that the model does not read is in the output exactly once, in its order and in its place: an
  edit of a word with such a character is not made. The model reads letters without their accents, `(`, `)` and `$` for
  other brackets and currencies, and `X` for a word with any other character (Москва, a_b, me@x.org) and for a symbol
  between words. It is not shown other symbols (emoji at the end, bullets, *notes).
* A backtick or an acute accent between letters is taken for a mistyped apostrophe, and becomes one.

This is done before and after the model: all decoding modes read the same tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from fairseq_aggdec.writing.characters import PUNCTUATION, plain

WORD = "X"
"""the word that the model is shown for one that it cannot read; it nearly always copies it"""
_WORD = "\ufffc"  # its stand-in for the tokeniser, which would take "X." for an abbreviation
_CHUNK = re.compile(r"(\s*)([—―]|[^\s—―]+)")
_CORE = re.compile(r"[#@]?\w(?:.*\w)?")
_BETWEEN_WORDS = re.compile(r"(?<=\w)\s+[^\w\s]+(?=\s+\w)")
_MISTYPED = re.compile(r"(?<=[^\W\d_])[`´](?=[^\W\d_])")


@dataclass
class _Piece:
    """A token of the line, or a symbol that the model is not shown.

    Attributes:
        plain: the token as the model reads it; empty for a symbol.
        written: the writer's characters.
        space: the writer's white space before it.
        kept: whether it has a character that must not be lost.
    """

    plain: str
    written: str
    space: str = ""
    kept: bool = False

    @property
    def own(self) -> bool:
        """Whether the writer's characters differ from those that the model reads."""
        return self.plain != self.written


@cache
def moses() -> tuple[Any, Any]:
    """The Moses tokeniser and detokeniser for English."""
    from sacremoses import MosesDetokenizer, MosesTokenizer  # slow to import

    return MosesTokenizer("en"), MosesDetokenizer("en")


class WrittenLine:
    """One line of English, as it was typed; white space around it is ignored."""

    def __init__(self, line: str) -> None:
        self._pieces = list(_tokens(_MISTYPED.sub("'", line.strip())))
        self._shown = [number for number, piece in enumerate(self._pieces) if piece.plain]

    @property
    def tokens(self) -> str:
        """The Moses tokens that the model reads, in ASCII, joined by spaces."""
        return " ".join(self._pieces[number].plain for number in self._shown)

    def restored(self, answer: str) -> str:
        """The model's output for `tokens`, Moses tokens too, as running text with the writer's characters."""
        result = list(self._merged(answer.split()))
        tokens = [piece.plain.replace("@", "-") for piece, _ in result if piece.plain]  # Moses makes "-" of " @-@ "
        text = moses()[1].detokenize(tokens, unescape=False)
        parts: list[str] = []
        waiting, end = iter(tokens), 0
        for place, (piece, number) in enumerate(result):
            usual = " "
            if piece.plain:
                token = next(waiting)
                start = text.index(token, end)
                usual, end = text[end:start], start + len(token)
            if place > 0:
                parts.append(self._space(result[place - 1], (piece, number), usual))
            parts.append(piece.written)
        return "".join(parts)

    def _merged(self, answer: list[str]) -> Iterator[tuple[_Piece, int | None]]:
        """The pieces of the output, each with its number in the line; None for one of the model's."""
        pieces, shown = self._pieces, self._shown
        kept = {piece.plain for piece in pieces if piece.kept}
        source = [pieces[number].plain for number in shown]
        bounds = [*shown, len(pieces)]  # a symbol goes with the token before it
        yield from ((pieces[number], number) for number in range(bounds[0]))
        if not source:
            return
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, source, answer, autojunk=False).get_opcodes():
            old = range(bounds[i1], bounds[i2])
            if kind == "equal" or any(pieces[number].kept and pieces[number].plain for number in old):
                yield from ((pieces[number], number) for number in old)
                continue
            # a token that stands for such a word comes from the line alone
            new = [_Piece(token, token) for token in answer[j1:j2] if token not in kept]
            written = 0
            for place, number in enumerate((number for number in old if pieces[number].plain), start=1):
                upto = len(new) * place // (i2 - i1)
                yield from ((piece, None) for piece in new[written:upto])
                written = upto
                yield from ((pieces[symbol], symbol) for symbol in range(number + 1, bounds[i1 + place]))
            yield from ((piece, None) for piece in new[written:])

    def _space(self, before: tuple[_Piece, int | None], after: tuple[_Piece, int | None], usual: str) -> str:
        """The white space between two pieces of the output: beside the writer's own characters it is the writer's."""
        (left, left_number), (right, right_number) = before, after
        if right_number and right.own:
            return right.space
        if left_number is not None and left.own and left_number + 1 < len(self._pieces):
            return self._pieces[left_number + 1].space
        if right_number and left_number == right_number - 1 and right.space.strip(" \t"):
            return right.space
        return usual


def _readable(chunk: str) -> Iterator[_Piece]:
    """The pieces of a text without white space: characters and symbols; a word that cannot be read is one piece."""
    core = _CORE.search(chunk)
    if core and any(plain(character) is None for character in core[0]):
        yield from _readable(chunk[: core.start()])
        yield _Piece(_WORD, core[0], kept=True)
        yield from _readable(chunk[core.end() :])
        return
    last: _Piece | None = None
    for character in chunk:
        shown = plain(character)
        lost = shown != character and character not in PUNCTUATION
        if shown == "" and last is not None:
            last.written += character
            last.kept |= lost
            continue
        if last is not None:
            yield last
        last = _Piece((shown or "").strip(), character, kept=lost)
    if last is not None:
        yield last


def _tokens(line: str) -> Iterator[_Piece]:
    """The tokens and symbols of a line, in order."""
    characters: list[_Piece] = []
    text = ""
    for match in _CHUNK.finditer(line):
        space, chunk = match.groups()
        symbol = _BETWEEN_WORDS.match(line, match.start()) and all(plain(character) is None for character in chunk)
        found = [_Piece(_WORD, chunk, kept=True)] if symbol else list(_readable(chunk))
        found[0].space = space
        characters += found
        text += " " + "".join(piece.plain or " " for piece in found)
    waiting = iter(characters)
    over = 0  # characters of the token that belong to the piece before: an ellipsis is three
    for token in moses()[0].tokenize(text, aggressive_dash_splits=False, return_str=True, escape=False).split():
        whole = _Piece(token.replace(_WORD, WORD), "")
        while over < len(token):
            piece = next(waiting)
            if not piece.plain:
                yield piece
                continue
            if not whole.written:
                whole.space = piece.space
            whole.written += piece.written
            whole.kept |= piece.kept
            over += len(piece.plain)
        over -= len(token)
        yield whole
    yield from waiting
