"""Shows which output tokens came from drafts and which from the verifier (papers/000 Tables 2 and 17)."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from fairseq_aggdec.decoding.stats import SentenceStats

BIFURCATION, BONUS, SINGLE, WHOLE = "bifurcation", "bonus token", "re-decoded", "draft to the end"
"""kinds of iterations, by their last token: the verifier replaced a draft token; it added a bonus token to a draft that
was accepted as a whole; it decoded one token without a draft; the accepted draft ended the sentence"""


@dataclass(frozen=True)
class Segment:
    """The tokens that one iteration added to the output."""

    drafted: list[str]
    """accepted draft tokens"""
    own: list[str]
    """the verifier's own token after them; empty if the draft ended with EOS"""
    rejected: list[str] = field(default_factory=list)
    """rejected draft tokens; empty if drafts were not recorded"""

    @property
    def step(self) -> str:
        """The kind of iteration: `BIFURCATION`, `BONUS`, `SINGLE` or `WHOLE`. Right only if drafts were recorded."""
        if self.rejected:
            return BIFURCATION
        if self.own:
            return BONUS if self.drafted else SINGLE
        return WHOLE


def wants_colour(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to print colours.

    Args:
        choice: `always`, `never` or `auto`. `auto` prints colours on a terminal, unless the environment variable
            NO_COLOR is set (https://no-color.org).
        stream: where the text is printed; None for standard output.
    """
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and (stream or sys.stdout).isatty()


def segments(
    tokens: Sequence[str], stats: SentenceStats, drafts: Sequence[Sequence[str]] | None = None
) -> list[Segment]:
    """Split an output into the tokens of each iteration.

    Args:
        tokens: symbols of the output, EOS included.
        stats: counters of the output.
        drafts: symbols of each iteration's draft; None if they were not recorded.
    """
    result, begin = [], 0
    for number, (accepted, committed) in enumerate(zip(stats.accepted, stats.committed, strict=True)):
        middle, end = begin + accepted, begin + committed
        rejected = [] if drafts is None else list(drafts[number][accepted:])
        result.append(Segment(list(tokens[begin:middle]), list(tokens[middle:end]), rejected))
        begin = end
    return result
