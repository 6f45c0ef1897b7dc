"""The sentences that `aggdec demo` decodes."""

from __future__ import annotations

import sys
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text


def read_sentences(given: list[str], source: str | None, built_in: Path) -> list[str]:
    """The sentences of the command line, or of a file (`-`: of the standard input), or else the built-in ones.

    Raises:
        AggdecError: sentences and a file are given, there is no sentence, or something is not UTF-8 or cannot be read.
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
        lines = decode_text(data, name).split("\n")  # nothing else ends a line, as in fairseq
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise AggdecError("no sentence given: nothing to decode")
    return sentences


def _checked(sentence: str) -> str:
    """A sentence of the command line; Python does not check that its bytes are UTF-8."""
    try:
        sentence.encode()
    except UnicodeEncodeError as error:
        text = sentence.encode(errors="replace").decode()
        raise AggdecError(f"the sentence '{text[:60]}' is not valid UTF-8 at character {error.start + 1}") from None
    return sentence
