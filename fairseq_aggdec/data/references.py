"""Sentences with different numbers of references, and columns in which every sentence has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fairseq_aggdec.errors import AggdecError

_CORRECT = "没有错误"
"""MuCGEC's words for "no error", in place of a correction"""
_UNCLEAR = "无法标注"
"""MuCGEC's words for "cannot be annotated", in place of a correction"""


@dataclass(frozen=True)
class CorrectedSentence:
    """A sentence of a learner.

    Attributes:
        source: as it was written.
        corrections: one or more; where an annotator found no error, the sentence itself.
    """

    source: str
    corrections: list[str]


def read_corrections(lines: Iterable[str], name: str) -> Iterator[CorrectedSentence]:
    """Yields the sentences of a file in MuCGEC's format (Zhang et al. 2022), without those that cannot be annotated.

    Args:
        lines: number, sentence, one or more corrections, separated by tabs.
        name: the name of the file, for error messages.

    Raises:
        AggdecError: a line has too few fields, or an empty sentence.
    """
    for number, line in enumerate(lines, start=1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3 or not fields[1]:
            raise AggdecError(f"{name}, line {number}: number, sentence and corrections are expected: {line[:60]!r}")
        source = fields[1]
        corrections = [source if field == _CORRECT else field for field in fields[2:] if field and field != _UNCLEAR]
        if corrections:
            yield CorrectedSentence(source, corrections)


def reference_columns(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """The first reference of every sentence, then the second, and so on; a sentence without more repeats its last.

    Args:
        references: the references of each sentence, at least one.
    """
    most = max(map(len, references), default=0)
    return [[own[min(number, len(own) - 1)] for own in references] for number in range(most)]
