"""Counts the n-best lists that two runs of fairseq-generate have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.generate_output import GenerateOutput

SAME_SCORE = 1e-5
"""scores that are nearer to each other than this are the same, up to rounding"""


class Hypothesis(NamedTuple):
    """An H- line."""

    score: float
    """as printed, in base 2"""
    text: str


Lists = Mapping[int, Sequence[Hypothesis]]
"""the n-best list of each sentence, in the order of the lines"""


@dataclass
class ListCounts:
    """How many lists are the same: texts, order, and scores within `SAME_SCORE`."""

    lists: int = 0
    hypotheses: int = 0
    equal: int = 0
    near_ties: int = 0
    """lists with other texts, or another order, where the two scores at every place are the same"""
    differing: int = 0
    largest_score_difference: float = 0.0
    """at the places of equal lists and near-ties"""
    differences: list[str] = field(default_factory=list)
    """a line for each place at which a list has another text or score"""


def read_lists(path: Path) -> dict[int, list[Hypothesis]]:
    """The lists in a file that `fairseq-generate --results-path` wrote.

    Raises:
        AggdecError: the file holds none, or a line is damaged.
    """
    with path.open("rb") as lines:
        return lists_in(lines, str(path))


def lists_in(lines: Iterable[bytes], name: str) -> dict[int, list[Hypothesis]]:
    """As `read_lists`, of the lines of an output with this name. Spaces between two words count as one."""
    output = GenerateOutput()
    output.add_lines(lines, name)
    lists: dict[int, list[Hypothesis]] = {}
    for number, sentence in output.sentences.items():
        if not sentence.hypotheses:
            raise AggdecError(f"{sentence.place}: a hypothesis of sentence {number} is missing; decode again")
        lists[number] = list(map(Hypothesis, sentence.scores, sentence.hypotheses))
    return lists


def compare(expected: Lists, found: Lists) -> ListCounts:
    """Compare the lists of the same sentences.

    Raises:
        AggdecError: the sentences are not the same.
    """
    if expected.keys() != found.keys():
        missing = sorted(expected.keys() ^ found.keys())
        raise AggdecError(f"{len(missing)} sentences are in one of the two runs only, first number {missing[0]}")
    counts = ListCounts(len(expected), sum(map(len, expected.values())))
    for sentence, wanted in sorted(expected.items()):
        ours = found[sentence]
        apart = [abs(one.score - other.score) for one, other in zip(wanted, ours, strict=False)]
        same_scores = len(wanted) == len(ours) and max(apart) <= SAME_SCORE
        same_texts = [one.text for one in wanted] == [one.text for one in ours]
        if same_scores:
            counts.largest_score_difference = max([counts.largest_score_difference, *apart])
        if same_scores and same_texts:
            counts.equal += 1
            continue
        counts.near_ties += same_scores
        counts.differing += not same_scores
        for place in range(max(len(wanted), len(ours))):
            pair = [part[place] if place < len(part) else None for part in (wanted, ours)]
            if None in pair or pair[0].text != pair[1].text or apart[place] > SAME_SCORE:  # type: ignore[union-attr]
                kind = "near-tie" if same_scores else "differs"
                words = [f"{one.score:.7f} {one.text!r}" if one else "nothing" for one in pair]
                counts.differences.append(f"sentence {sentence}, place {place}, {kind}: {words[1]} for {words[0]}")
    return counts
