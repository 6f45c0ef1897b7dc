"""Compares the hypotheses of two fairseq-generate files token by token."""

from __future__ import annotations

import math

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.generate_file import Generated
from fairseq_aggdec.lab.lossless.differences import NEAR_TIE, first_difference

_NEAR = NEAR_TIE / math.log(2) + 1e-4  # in base 2, plus the rounding to four decimals


def differing(first: dict[int, Generated], second: dict[int, Generated]) -> list[int]:
    """Returns the numbers of the sentences whose hypotheses differ.

    Raises:
        AggdecError: the files do not hold the same sentences.
    """
    if first.keys() != second.keys():
        missing = sorted(first.keys() ^ second.keys())
        raise AggdecError(
            f"the files hold different sentences: {len(missing)} are in one only, first number {missing[0]}"
        )
    for index in first:
        if len({first[index].source, second[index].source} - {""}) > 1:
            raise AggdecError(
                f"sentence {index} has another source in the second file: the files are of different data"
            )
    return [index for index in first if first[index].hypothesis != second[index].hypothesis]


def describe(index: int, first: Generated, second: Generated) -> str:
    """Returns both hypotheses, their scores and the position of the first difference, and says if it is a near-tie."""
    same = _place(first, second)
    tie = ", a near-tie" if is_near_tie(first, second) else ""
    return (
        f"sentence {index}: differs from token {same} on, scores differ by {abs(first.score - second.score):.6f}{tie}\n"
        f"  A {first.score:.6f}\t{first.hypothesis}\n  B {second.score:.6f}\t{second.hypothesis}"
    )


def is_near_tie(first: Generated, second: Generated) -> bool:
    """Whether rounding explains the first difference, by the printed token scores.

    Both tokens then have about the same probability, so that neither can have more than one half.
    """
    place = _place(first, second)
    if place >= min(len(first.token_scores), len(second.token_scores)):
        return False
    one, other = first.token_scores[place], second.token_scores[place]
    return abs(one - other) <= _NEAR and max(one, other) <= -1 + _NEAR


def _place(first: Generated, second: Generated) -> int:
    """The number of the first token that differs."""
    place = first_difference(first.hypothesis.split(" "), second.hypothesis.split(" "))
    assert place is not None  # the hypotheses differ
    return place
