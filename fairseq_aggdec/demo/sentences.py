"""The sentences that the demo is given."""

from __future__ import annotations

import sys
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text


def read_sentences(given: list[str], source: str | None, built_in: Path) -> list[str]:
    """The sentences of the command line, of a file (or of the standard input, `-`), or the built-in ones.

    Raises:
        AggdecError: there is none, both are given, a file cannot be read, or one is not UTF-8.
    """
    if given and source:
        raise AggdecError("give sentences or --input, not both")
    if given:
        lines = [_checked(sentence) for sentence in given]
    else:
        name = "standard input" if source == "-" else source or "the built-in sentences"
        try:
            data = sys.stdin.buffer.read() if source == "-" else Path(source or built_in).read_bytes()
        except OSError as error:
            raise AggdecError(f"{name}: cannot be read ({error.strerror})") from error
        lines = decode_text(data, name).split("\n")  # as for fairseq, nothing else ends a line
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise AggdecError("no sentence given: nothing to decode")
    return sentences


def _checked(sentence: str) -> str:
    """A sentence of the command line, whose bytes Python takes as they come."""
    try:
        sentence.encode()
    except UnicodeEncodeError as error:
        text = sentence.encode(errors="replace").decode()
        raise AggdecError(f"the sentence '{text[:60]}' is not valid UTF-8 at character {error.start + 1}") from None
    return sentence
