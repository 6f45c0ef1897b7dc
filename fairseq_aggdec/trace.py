"""Which output tokens were drafted and verified in one block and which were decoded one by one (papers/000 Table 2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairseq_aggdec.decoding.stats import SentenceStats

_BLUE, _RED, _PLAIN = "\033[34m", "\033[1;31m", "\033[0m"


@dataclass(frozen=True)
class Segment:
    """What one iteration added to the output."""

    drafted: list[str]
    """accepted tokens of the draft"""
    own: list[str]
    """the verifier's own token after them: correction, bonus token or single step; empty where the draft held EOS"""


def segments(tokens: Sequence[str], stats: SentenceStats) -> list[Segment]:
    """Cut an output into its iterations.

    Args:
        tokens: the output as text, EOS included.
        stats: its counters.
    """
    result, begin = [], 0
    for accepted, committed in zip(stats.accepted, stats.committed, strict=True):
        middle, end = begin + accepted, begin + committed
        result.append(Segment(list(tokens[begin:middle]), list(tokens[middle:end])))
        begin = end
    return result


def render(parts: Sequence[Segment], colour: bool) -> str:
    """One line: verified drafts blue (or in brackets), the verifier's own tokens red (or bare)."""
    pieces = []
    for part in parts:
        if part.drafted:
            text = " ".join(part.drafted)
            pieces.append(f"{_BLUE}{text}{_PLAIN}" if colour else f"[{text}]")
        if part.own:
            text = " ".join(part.own)
            pieces.append(f"{_RED}{text}{_PLAIN}" if colour else text)
    return " ".join(pieces)
