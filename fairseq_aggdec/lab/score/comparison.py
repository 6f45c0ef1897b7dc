"""Compares the best hypotheses of two fairseq-generate files token by token."""

import math

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.generate_file import GeneratedSentence
from fairseq_aggdec.lab.verify.differences import NEAR_TIE, first_difference

_NEAR = NEAR_TIE / math.log(2) + 1e-4  # in base 2, plus the rounding to four decimals


def differing(
    first: dict[int, GeneratedSentence], second: dict[int, GeneratedSentence]
) -> list[int]:
    """Return the numbers of the sentences with different hypotheses.

    Raises:
        AggdecError: the files do not hold the same sentences.
    """
    if missing := sorted(first.keys() ^ second.keys()):
        raise AggdecError(
            f"the files hold different sentences: {len(missing)} are in one only, first number {missing[0]}"
        )
    for index in first:
        if len({*first[index].sources, *second[index].sources} - {""}) > 1:
            raise AggdecError(
                f"sentence {index} has another source in the second file: the files are of different data"
            )
    return [
        index
        for index in first
        if first[index].hypotheses[0] != second[index].hypotheses[0]
    ]


def describe(index: int, first: GeneratedSentence, second: GeneratedSentence) -> str:
    """Return both hypotheses, their scores and the position of the first difference, and say if it is a near-tie."""
    tie = ", a near-tie" if is_near_tie(first, second) else ""
    scores = f"scores differ by {abs(first.scores[0] - second.scores[0]):.6f}{tie}"
    lines = [
        f"  {name} {one.scores[0]:.6f}\t{one.hypotheses[0]}"
        for name, one in (("A", first), ("B", second))
    ]
    return "\n".join(
        [
            f"sentence {index}: differs from token {_place(first, second)} on, {scores}",
            *lines,
        ]
    )


def is_near_tie(first: GeneratedSentence, second: GeneratedSentence) -> bool:
    """Whether rounding explains the first difference, by the printed token scores.

    Both tokens then have about the same probability, so that neither can have more than one half.
    """
    place = _place(first, second)
    scores = [
        one.token_scores[0]
        for one in (first, second)
        if one.token_scores and place < len(one.token_scores[0])
    ]
    if len(scores) < 2:
        return False
    one, other = scores[0][place], scores[1][place]
    return abs(one - other) <= _NEAR and max(one, other) <= -1 + _NEAR


def _place(first: GeneratedSentence, second: GeneratedSentence) -> int:
    """The number of the first token that differs."""
    place = first_difference(
        first.hypotheses[0].split(" "), second.hypotheses[0].split(" ")
    )
    assert place is not None  # the hypotheses differ
    return place
