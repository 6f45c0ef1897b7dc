"""Which output tokens were drafted and verified in a block, and which the verifier said (papers/000 Tables 2, 17)."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from fairseq_aggdec.decoding.stats import SentenceStats

_BLUE, _RED, _STRUCK, _PLAIN = "\033[34m", "\033[1;31m", "\033[2;9m", "\033[0m"


BIFURCATION, BONUS, SINGLE, WHOLE = "bifurcation", "bonus token", "re-decoded", "draft to the end"
"""kinds of iterations: the verifier put its own token in the place of a drafted one; it added one to a draft that
passed as a whole; it decoded one without a draft; the draft that passed had the end of the sentence"""


@dataclass(frozen=True)
class Segment:
    """What one iteration added to the output."""

    drafted: list[str]
    """accepted tokens of the draft"""
    own: list[str]
    """the verifier's own token after them: correction, bonus token or single step; empty where the draft held EOS"""
    rejected: list[str] = field(default_factory=list)
    """tokens of the draft behind the accepted ones, where drafts were kept"""

    @property
    def step(self) -> str:
        """What happened: `BIFURCATION`, `BONUS`, `SINGLE` or `WHOLE`; to be asked where drafts were kept."""
        if self.rejected:
            return BIFURCATION
        if self.own:
            return BONUS if self.drafted else SINGLE
        return WHOLE


def wants_colour(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to print colours.

    Args:
        choice: `always`, `never`, or `auto`: on a terminal, unless the environment has NO_COLOR (https://no-color.org).
        stream: what is printed to; standard output without.
    """
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and (stream or sys.stdout).isatty()


def segments(
    tokens: Sequence[str], stats: SentenceStats, drafts: Sequence[Sequence[str]] | None = None
) -> list[Segment]:
    """Cut an output into its iterations.

    Args:
        tokens: the output as text, EOS included.
        stats: its counters.
        drafts: the draft of each iteration as text, where they were kept.
    """
    result, begin = [], 0
    for number, (accepted, committed) in enumerate(zip(stats.accepted, stats.committed, strict=True)):
        middle, end = begin + accepted, begin + committed
        rejected = [] if drafts is None else list(drafts[number][accepted:])
        result.append(Segment(list(tokens[begin:middle]), list(tokens[middle:end]), rejected))
        begin = end
    return result


def render(parts: Sequence[Segment], colour: bool) -> str:
    """One line: verified drafts blue (or in brackets), the verifier's own tokens red (or bare)."""
    return " ".join(_render_kept(part, colour) for part in parts)


def render_iterations(parts: Sequence[Segment], colour: bool) -> list[str]:
    """A line for each iteration, as `render`, with what it threw away struck through (or between strokes)."""
    lines = []
    for part in parts:
        line = _render_kept(part, colour)
        if part.rejected:
            text = " ".join(part.rejected)
            line += f"  {_STRUCK}{text}{_PLAIN}" if colour else f"  /{text}/"
        lines.append(line)
    return lines


def _render_kept(part: Segment, colour: bool) -> str:
    pieces = []
    if part.drafted:
        text = " ".join(part.drafted)
        pieces.append(f"{_BLUE}{text}{_PLAIN}" if colour else f"[{text}]")
    if part.own:
        text = " ".join(part.own)
        pieces.append(f"{_RED}{text}{_PLAIN}" if colour else text)
    return " ".join(pieces)
