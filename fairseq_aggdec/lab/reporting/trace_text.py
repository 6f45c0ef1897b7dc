"""Shows decoded sentences iteration by iteration as text for a terminal (papers/000 Tables 2 and 17)."""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.lab.reporting.trace import BIFURCATION, BONUS, SINGLE, WHOLE, Segment
from fairseq_aggdec.lab.reporting.traces import Trace, TraceFile

_BLUE, _RED, _GREEN, _YELLOW, _STRUCK, _PLAIN = "\033[34m", "\033[1;31m", "\033[32m", "\033[33m", "\033[2;9m", "\033[0m"
_OWN = {BIFURCATION: _RED, BONUS: _GREEN, SINGLE: _YELLOW, WHOLE: ""}


def text(files: Sequence[TraceFile], colour: bool) -> str:
    """All sentences, with a legend.

    Args:
        files: the decoded sentences of each file.
        colour: whether to use the terminal's colours; otherwise brackets and slashes.
    """
    blocks = [_legend(colour)]
    for file in files:
        blocks.append(f"== {printable(file.name)}")
        blocks += [_sentence(trace, colour) for trace in file.traces]
    return "\n\n".join(blocks) + "\n"


def printable(token: str) -> str:
    """A token with its control characters replaced."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in token)


def _legend(colour: bool) -> str:
    if not colour:
        return "[accepted drafts]  the verifier's own token  /thrown away/"
    return (
        f"{_BLUE}accepted drafts{_PLAIN}  the verifier's own token: {_RED}at a bifurcation{_PLAIN}, "
        f"{_GREEN}bonus{_PLAIN} after a whole draft, {_YELLOW}re-decoded{_PLAIN} without a draft  "
        f"{_STRUCK}thrown away{_PLAIN}"
    )


def _sentence(trace: Trace, colour: bool) -> str:
    lines = [f"{trace.number}: {trace.summary}", f"  source  {_joined(trace.source)}"]
    lines += [f"  {number:>6}  {_iteration(part, colour)}" for number, part in enumerate(trace.parts, start=1)]
    return "\n".join([*lines, f"  output  {_joined(trace.output)}"])


def _iteration(part: Segment, colour: bool) -> str:
    pieces = [piece for piece in (kept(part, colour, _OWN[part.step]), rejected(part, colour)) if piece]
    return "  ".join([" ".join(pieces), f"({note(part)})"])


def kept(part: Segment, colour: bool, own: str = _RED) -> str:
    """What an iteration adds: the draft's tokens blue or in brackets, the verifier's in the colour `own` or bare."""
    pieces = []
    if part.drafted:
        pieces.append(_painted(part.drafted, _BLUE) if colour else f"[{_joined(part.drafted)}]")
    if part.own:
        pieces.append(_painted(part.own, own) if colour else _joined(part.own))
    return " ".join(pieces)


def rejected(part: Segment, colour: bool) -> str:
    """The rejected tokens of a draft, struck through or between slashes; empty if there are none."""
    if not part.rejected:
        return ""
    return _painted(part.rejected, _STRUCK) if colour else f"/{_joined(part.rejected)}/"


def note(part: Segment) -> str:
    """An iteration in words."""
    length = len(part.drafted) + len(part.rejected)
    if part.step == BIFURCATION:
        return f"bifurcation: {len(part.drafted)} of {length} drafted tokens accepted"
    if part.step == SINGLE:
        return "re-decoded: a single step without a draft"
    ending = "and a bonus token" if part.step == BONUS else "to the end of the sentence"
    return f"{length} of {length} drafted tokens accepted, {ending}"


def _painted(tokens: Sequence[str], colour: str) -> str:
    return f"{colour}{_joined(tokens)}{_PLAIN}"


def _joined(tokens: Sequence[str]) -> str:
    return " ".join(map(printable, tokens))
