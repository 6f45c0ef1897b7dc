"""Sentences with a different number of references each, as columns in which every sentence has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fairseq_aggdec.errors import AggdecError

_CORRECT = "没有错误"
"""what MuCGEC's annotators write in place of a correction: no error"""
_UNCLEAR = "无法标注"
"""likewise: cannot be annotated, as nobody knows what is meant"""


@dataclass(frozen=True)
class CorrectedSentence:
    """A sentence of a learner.

    Attributes:
        source: as it was written.
        corrections: one or more; the sentence itself where an annotator found no error.
    """

    source: str
    corrections: list[str]


def read_corrections(lines: Iterable[str], name: str) -> Iterator[CorrectedSentence]:
    """Yields the sentences of a file in the layout of MuCGEC (Zhang et al. 2022), less those that nobody understands.

    Args:
        lines: number, sentence, one or more corrections, separated by tabs.
        name: what an error calls the file.

    Raises:
        AggdecError: a line has fewer fields, or an empty sentence.
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
    """The first reference of every sentence, the second, and so on; where a sentence has no more, its last again.

    Args:
        references: those of each sentence, at least one.
    """
    most = max(map(len, references), default=0)
    return [[own[min(number, len(own) - 1)] for own in references] for number in range(most)]
