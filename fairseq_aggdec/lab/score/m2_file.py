"""Reading M2 files, which hold gold edits of grammatical error correction (Dahlmeier and Ng 2012).

Each sentence is a block of lines, with an empty line between two blocks:

    S The cat sat at mat .
    A 3 4|||Prep|||on|||REQUIRED|||-NONE-|||0
    A 4 4|||ArtOrDet|||the||a|||REQUIRED|||-NONE-|||0

`A START END|||type|||correction||another||...|||required|||comment|||annotator`: the tokens from START up to END become
one of the corrections; `-NONE-` or nothing is a deletion. An annotator who wants no edit has an edit of type `noop` or
with the offsets -1 -1. As in the official scorer, an annotator without a line in a block has not seen the sentence, and
a block without annotators counts as annotated once, without edits.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, open_lines

logger = logging.getLogger(__name__)

_NOTHING = "-NONE-"


@dataclass(frozen=True)
class Edit:
    """The source tokens from `start` up to `end` become one of the corrections."""

    start: int
    end: int
    corrections: tuple[str, ...]
    """tokens joined by spaces; an empty text for a deletion"""


@dataclass(frozen=True)
class M2Sentence:
    """A source sentence with the edits of each of its annotators, in the file's order."""

    tokens: tuple[str, ...]
    annotators: dict[int, tuple[Edit, ...]]
    """{annotator: edits}, at least one annotator"""

    def pair(self) -> tuple[str, str]:
        """The sentence, and the same after the first annotator's edits, each with its first correction."""
        target = list(self.tokens)
        edits = next(iter(self.annotators.values()))
        # from the end, so that earlier places stay
        for edit in sorted(
            edits, key=lambda edit: (edit.start, edit.end), reverse=True
        ):
            target[edit.start : edit.end] = edit.corrections[0].split()
        return " ".join(self.tokens), " ".join(target)

    def in_characters(self) -> "M2Sentence":
        """The same sentence with a token for each character, for Chinese; offsets and corrections are converted."""
        starts = [0]
        for token in self.tokens:
            starts.append(starts[-1] + len(token))

        def converted(edit: Edit) -> Edit:
            corrections = (" ".join("".join(text.split())) for text in edit.corrections)
            return Edit(starts[edit.start], starts[edit.end], tuple(corrections))

        annotators = {
            annotator: tuple(map(converted, edits))
            for annotator, edits in self.annotators.items()
        }
        return M2Sentence(tuple("".join(self.tokens)), annotators)


def read_m2(path: Path) -> list[M2Sentence]:
    """The sentences of an M2 file, gzipped or not.

    Raises:
        AggdecError: the file has no sentence, or a line that is not M2, which the message names.
        OSError: the file cannot be read.
    """
    blocks: list[list[Line]] = [[]]
    with open_lines(path) as (lines, _):
        for number, data in enumerate(lines, start=1):
            text = decode_text(data, str(path), number).rstrip("\r\n")
            if text.strip():
                blocks[-1].append((number, text))
            elif blocks[-1]:
                blocks.append([])
    sentences = [_sentence(block, str(path)) for block in blocks if block]
    if not sentences:
        raise AggdecError(
            f"{path}: holds no sentences; an M2 file has lines that begin with 'S ' and 'A '"
        )
    return sentences


Line = tuple[int, str]
"""where a line stands in the file, from 1, and its text"""


def _sentence(block: Sequence[Line], path: str) -> M2Sentence:
    number, first = block[0]
    if first != "S" and not first.startswith("S "):
        raise AggdecError(
            f"{path}, line {number}: a block of an M2 file begins with 'S ', not with {first[:30]!r}"
        )
    tokens = tuple(first[1:].split())
    annotators: dict[int, list[Edit]] = {}
    for number, line in block[1:]:
        if line.startswith("I "):  # as the official scorer does
            continue
        if not line.startswith("A "):
            raise AggdecError(
                f"{path}, line {number}: after a sentence come 'A ' lines, then an empty line; found {line[:30]!r}"
            )
        annotator, edit = _annotation(line, f"{path}, line {number}")
        edits = annotators.setdefault(annotator, [])
        if edit is None:
            continue
        if edit.end > len(tokens):
            logger.warning(
                f"{path}, line {number}: ends after the sentence's {len(tokens)} tokens: left out"
            )
            continue
        edits.append(edit)
    return M2Sentence(
        tokens,
        {key: tuple(edits) for key, edits in sorted(annotators.items())} or {0: ()},
    )


def _annotation(line: str, place: str) -> tuple[int, Edit | None]:
    """The annotator and the edit of an `A` line; None for an annotator who wants no edit."""
    fields = line[2:].split("|||")
    try:
        start, end = map(int, fields[0].split())
        kind = fields[1]
        corrections = fields[2]
        annotator = int(fields[5])
    except (ValueError, IndexError):
        raise AggdecError(
            f"{place}: not an edit: {line[:60]!r}; it reads 'A START END|||type|||corrections|||required|||comment|||"
            "annotator', with whole numbers for start, end and annotator"
        ) from None
    if kind == "noop" or start < 0 or end < 0:
        return annotator, None
    if end < start:
        raise AggdecError(
            f"{place}: an edit cannot end at {end}, before its start {start}"
        )
    choices = (text.strip() for text in corrections.split("||"))
    return annotator, Edit(
        start, end, tuple("" if text == _NOTHING else text for text in choices)
    )
