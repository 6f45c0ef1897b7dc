"""A line as its writer typed it: the tokens that the corrector reads, and the correction in the writer's characters.

Promised for every output of the model:

* The model reads ASCII only: letters, digits and the usual marks (`characters.READ`). A line of these is not changed.
* Punctuation of a word processor (curly quotes, dashes, an ellipsis, unusual spaces, soft hyphens) is read as that of a
  keyboard. Where the model keeps the token, the output has the writer's characters.
* Between tokens that the model keeps the writer's spacing stays: no space in 12/03/2021, two spaces, a tab. The
  Moses detokeniser spaces new tokens (`spacing`).
* Every other character that the model does not read is in the output exactly once, in its order and in its place: an
  edit of a word with such a character is not made. The model reads letters without their accents, `(`, `)` and `$` for
  other brackets and currencies, and `X` for a word with any other character (Москва, a_b, me@x.org) and for a symbol
  between words. It is not shown other symbols (emoji at the end, bullets, *notes).
* A backtick or an acute accent between letters is taken for a mistyped apostrophe, and becomes one.

This is done before and after the model: all decoding modes read the same tokens.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from fairseq_aggdec.text.characters import PUNCTUATION, plain
from fairseq_aggdec.text.spacing import aligned, match_spacing

WORD = "X"
"""the word that the model is shown for one that it cannot read; it nearly always copies it"""
# its stand-in for the tokeniser, which would take "X." for an abbreviation
_WORD = "\ufffc"
_CHUNK = re.compile(r"\s*([—―]|[^\s—―]+)")
_CORE = re.compile(r"[#@]?\w(?:.*\w)?")
_BETWEEN_WORDS = re.compile(r"(?<=\w)\s+[^\w\s]+(?=\s+\w)")
_MISTYPED = re.compile(r"(?<=[^\W\d_])[`´](?=[^\W\d_])")


@dataclass
class _Piece:
    """A token of the line, or a symbol that the model is not shown.

    Attributes:
        plain: the token as the model reads it; empty for a symbol.
        written: the writer's characters.
        kept: whether it has a character that must not be lost.
    """

    plain: str
    written: str
    kept: bool = False


@cache
def moses() -> tuple[Any, Any]:
    """The Moses tokeniser and detokeniser for English."""
    from sacremoses import MosesDetokenizer, MosesTokenizer  # slow to import

    return MosesTokenizer("en"), MosesDetokenizer("en")


class WrittenLine:
    """One line of English, as it was typed; white space around it is ignored."""

    def __init__(self, line: str) -> None:
        self._line = _MISTYPED.sub("'", line.strip())
        self._pieces = list(_tokens(self._line))
        # the indices of pieces that the model reads
        self._shown = [i for i, piece in enumerate(self._pieces) if piece.plain]

    @property
    def tokens(self) -> str:
        """The Moses tokens that the model reads, in ASCII, joined by spaces."""
        return " ".join(self._pieces[i].plain for i in self._shown)

    def restored(self, answer: str) -> str:
        """The model's output for `tokens`, Moses tokens too, as running text with the writer's characters."""
        written = [piece.written for piece in self._merged(answer.split())]
        return match_spacing(self._line, moses()[1].detokenize(written, unescape=False))

    def _merged(self, answer: list[str]) -> Iterator[_Piece]:
        """The pieces of the output: the line's and the model's."""
        pieces = self._pieces
        shown = self._shown
        kept = {piece.plain for piece in pieces if piece.kept}
        source = [pieces[i].plain for i in shown]
        bounds = [*shown, len(pieces)]  # a symbol goes with the token before it
        yield from pieces[: bounds[0]]
        if not source:
            return
        for kind, olds, news in aligned(source, answer):
            old = pieces[bounds[olds.start] : bounds[olds.stop]]
            if kind == "equal" or any(piece.kept and piece.plain for piece in old):
                yield from old
                continue
            # a token that stands for such a word comes from the line alone
            new = [
                _Piece(token, token)
                for token in answer[news.start : news.stop]
                if token not in kept
            ]
            written = 0
            for place in olds:
                upto = len(new) * (place + 1 - olds.start) // len(olds)
                yield from new[written:upto]
                written = upto
                yield from pieces[shown[place] + 1 : bounds[place + 1]]
            yield from new[written:]


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
        chunk = match[1]
        symbol = _BETWEEN_WORDS.match(line, match.start()) and all(
            plain(character) is None for character in chunk
        )
        found = [_Piece(_WORD, chunk, kept=True)] if symbol else list(_readable(chunk))
        characters += found
        text += " " + "".join(piece.plain or " " for piece in found)
    waiting = iter(characters)
    # characters of the token that belong to the piece before: an ellipsis is three
    over = 0
    for token in (
        moses()[0]
        .tokenize(text, aggressive_dash_splits=False, return_str=True, escape=False)
        .split()
    ):
        whole = _Piece(token.replace(_WORD, WORD), "")
        while over < len(token):
            piece = next(waiting)
            if not piece.plain:
                yield piece
                continue
            whole.written += piece.written
            whole.kept |= piece.kept
            over += len(piece.plain)
        over -= len(token)
        yield whole
    yield from waiting
