"""Compares the best hypotheses of two fairseq-generate files token by token."""

import math
from dataclasses import dataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.generate_file import GeneratedSentence
from fairseq_aggdec.lab.verify.differences import NEAR_TIE, first_difference

_NEAR = NEAR_TIE / math.log(2) + 1e-4  # in base 2, plus the rounding to four decimals


@dataclass(frozen=True)
class Differing:
    """A sentence with different hypotheses."""

    index: int
    first: GeneratedSentence
    second: GeneratedSentence

    @property
    def place(self) -> int:
        """The index of the first token that differs."""
        both = (str(one.hypothesis).split(" ") for one in (self.first, self.second))
        place = first_difference(*both)
        assert place is not None
        return place

    @property
    def is_near_tie(self) -> bool:
        """Whether rounding explains the first difference, by the printed token scores.

        Both tokens then have about the same probability, so that neither can have more than one half.
        """
        place = self.place
        both = (self.first.token_scores, self.second.token_scores)
        if place >= min(map(len, both)):
            return False
        one, other = (scores[place] for scores in both)
        return abs(one - other) <= _NEAR and max(one, other) <= -1 + _NEAR

    @property
    def text(self) -> str:
        """Both hypotheses, their scores and the position of the first difference, and whether it is a near-tie."""
        first = self.first
        second = self.second
        tie = ", a near-tie" if self.is_near_tie else ""
        return (
            f"sentence {self.index}: differs from token {self.place} on, "
            f"scores differ by {abs(first.score - second.score):.6f}{tie}\n"
            f"  A {first.score:.6f}\t{first.hypothesis}\n"
            f"  B {second.score:.6f}\t{second.hypothesis}"
        )


def differing(
    first: dict[int, GeneratedSentence], second: dict[int, GeneratedSentence]
) -> list[Differing]:
    """The sentences with different hypotheses.

    Raises:
        AggdecError: the files do not hold the same sentences.
    """
    if missing := sorted(first.keys() ^ second.keys()):
        raise AggdecError(
            f"the files hold different sentences: {len(missing)} are in one only, first number {missing[0]}"
        )
    found = [Differing(index, one, second[index]) for index, one in first.items()]
    for one in found:
        sources = (one.first.source, one.second.source)
        if all(sources) and sources[0] != sources[1]:
            raise AggdecError(
                f"sentence {one.index} has another source in the second file: the files are of different data"
            )
    return [one for one in found if one.first.hypothesis != one.second.hypothesis]
