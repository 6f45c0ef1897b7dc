"""Shows how sentences were decoded, iteration by iteration (papers/000 Tables 2 and 17), as text for a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.structured_files import parse

_BLUE = "\033[34m"
_RED = "\033[1;31m"
_GREEN = "\033[32m"
_YELLOW = "\033[33m"
_STRUCK = "\033[2;9m"
_PLAIN = "\033[0m"


@dataclass(frozen=True)
class Segment:
    """The tokens that one iteration added to the output."""

    drafted: list[str]
    """accepted draft tokens"""
    chosen: list[str]
    """the verifier's choice after them; empty if the draft ended with EOS"""
    rejected: list[str]
    """rejected draft tokens"""

    @property
    def kind(self) -> tuple[str, str]:
        """The colour of the verifier's choice, and the iteration in words."""
        accepted = len(self.drafted)
        length = accepted + len(self.rejected)
        if self.rejected:
            return _RED, f"bifurcation: {accepted} of {length} drafted tokens accepted"
        if self.chosen and not self.drafted:
            return _YELLOW, "re-decoded: a single step without a draft"
        ending = "and a bonus token" if self.chosen else "to the end of the sentence"
        return _GREEN, f"{length} of {length} drafted tokens accepted, {ending}"


@dataclass(frozen=True)
class Trace:
    """One decoded sentence; its tokens are symbols of the dictionaries."""

    number: int
    """fairseq's id of the sentence"""
    source: list[str]
    parts: list[Segment]
    """the iterations"""

    @property
    def output(self) -> list[str]:
        """The output tokens, EOS included."""
        return [token for part in self.parts for token in (*part.drafted, *part.chosen)]

    @property
    def summary(self) -> str:
        """The counters in words; EOS counts as a token."""
        tokens = len(self.output)
        iterations = len(self.parts)
        accepted = sum(len(part.drafted) for part in self.parts)
        drafted = accepted + sum(len(part.rejected) for part in self.parts)
        return (
            f"{tokens} tokens in {iterations} iterations, {tokens / max(1, iterations):.2f} an iteration; "
            f"{drafted} drafted, {accepted} of them accepted"
        )


def segments(
    tokens: Sequence[str], stats: SentenceStats, drafts: Sequence[Sequence[str]]
) -> list[Segment]:
    """Split an output, EOS included, into the tokens of each iteration; `drafts` are those of the iterations."""
    parts = []
    left = iter(tokens)
    for draft, accepted, committed in zip(
        drafts, stats.accepted, stats.committed, strict=True
    ):
        part = list(islice(left, committed))
        # a forced prefix is before the draft
        middle = accepted if accepted == committed else committed - 1
        parts.append(Segment(part[:middle], part[middle:], list(draft[accepted:])))
    return parts


def read_traces(
    path: Path, wanted: Sequence[int] | None = None, limit: int | None = None
) -> list[Trace]:
    """Read the sentences of a file of `--decoding-stats` with `--retain-iter-history`.

    Args:
        path: the file.
        wanted: ids of the sentences to return, in this order; None for all, by id.
        limit: the most sentences; None for no limit.

    Raises:
        AggdecError: the file has another format, has no drafts, or lacks a sentence.
        OSError: the file cannot be read.
    """
    traces: dict[int, Trace] = {}
    for line_number, line in enumerate(read_text_lines(path), start=1):
        where = f"{path}, line {line_number}"
        try:
            record = parse(line, dict[str, Any], where, "decode again")
            if "drafts" not in record:
                raise AggdecError(
                    f"{where}: has no drafts; decode with --decoding-stats and --retain-iter-history"
                )
            trace = _trace(record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise AggdecError(
                f"{where}: not of --decoding-stats ({error!r}); decode again"
            ) from error
        traces[trace.number] = trace
    if missing := [number for number in wanted or () if number not in traces]:
        raise AggdecError(f"{path}: has no sentences {', '.join(map(str, missing))}")
    chosen = wanted if wanted is not None else sorted(traces)
    return [traces[number] for number in chosen][:limit]


def _trace(record: dict[str, Any]) -> Trace:
    drafts = record["drafts"]
    output = record["output"]
    committed = record["committed_per_iteration"]
    if sum(committed) != len(output) or len(drafts) != len(committed):
        raise ValueError("counters do not fit the output")
    stats = SentenceStats(
        [len(draft) for draft in drafts], record["accepted_per_iteration"], committed
    )
    return Trace(
        int(record["id"]),
        list(map(str, record["source"])),
        segments(output, stats, drafts),
    )


def text(files: Mapping[str, Sequence[Trace]], colour: bool) -> str:
    """All sentences of some files, with a legend, in the terminal's colours or with brackets and slashes."""
    blocks = ["[accepted drafts]  the verifier's own token  /thrown away/"]
    if colour:
        blocks = [
            f"{_BLUE}accepted drafts{_PLAIN}  the verifier's own token: {_RED}at a bifurcation{_PLAIN}, "
            f"{_GREEN}bonus{_PLAIN} after a whole draft, {_YELLOW}re-decoded{_PLAIN} without a draft  "
            f"{_STRUCK}thrown away{_PLAIN}"
        ]
    for name, traces in files.items():
        blocks.append(f"== {_joined([name])}")
        for trace in traces:
            lines = [
                f"{trace.number}: {trace.summary}",
                f"  source  {_joined(trace.source)}",
            ]
            for index, part in enumerate(trace.parts, start=1):
                look, note = part.kind
                lines.append(f"  {index:>6}  {_marked(part, look, colour)}  ({note})")
            blocks.append("\n".join([*lines, f"  output  {_joined(trace.output)}"]))
    return "\n\n".join(blocks) + "\n"


def _marked(part: Segment, look: str, colour: bool) -> str:
    """Accepted draft tokens, the verifier's choice in the colour `look`, and rejected ones, between their marks."""
    coloured = ((_BLUE, _PLAIN), (look, _PLAIN), (_STRUCK, _PLAIN))
    marks = coloured if colour else (("[", "]"), ("", ""), ("/", "/"))
    pieces = zip(marks, (part.drafted, part.chosen, part.rejected), strict=True)
    return " ".join(
        f"{before}{_joined(tokens)}{after}"
        for (before, after), tokens in pieces
        if tokens
    )


def _joined(tokens: Sequence[str]) -> str:
    """The tokens in one line, with control characters replaced."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for one in " ".join(tokens)
    )
