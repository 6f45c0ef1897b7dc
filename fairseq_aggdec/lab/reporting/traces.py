"""Reads decoded sentences with their iterations from files of `--decoding-stats` with `--retain-iter-history`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.reporting.trace import Segment, segments
from fairseq_aggdec.structured_files import parse_json


@dataclass(frozen=True)
class Trace:
    """One decoded sentence; its tokens are symbols of the dictionaries."""

    number: int
    """fairseq's number of the sentence"""
    source: list[str]
    parts: list[Segment]
    """the iterations"""

    @property
    def output(self) -> list[str]:
        """The output tokens, EOS included."""
        return [token for part in self.parts for token in (*part.drafted, *part.own)]

    @property
    def drafted(self) -> int:
        return sum(len(part.drafted) + len(part.rejected) for part in self.parts)

    @property
    def accepted(self) -> int:
        return sum(len(part.drafted) for part in self.parts)

    @property
    def summary(self) -> str:
        """The counters in words; EOS counts as a token."""
        tokens, iterations = len(self.output), len(self.parts)
        return (
            f"{tokens} tokens in {iterations} iterations, {tokens / max(1, iterations):.2f} an iteration; "
            f"{self.drafted} drafted, {self.accepted} of them accepted"
        )


@dataclass(frozen=True)
class TraceFile:
    """The decoded sentences of one file."""

    name: str
    traces: list[Trace]


def read_traces(path: Path, wanted: Sequence[int] | None = None, limit: int | None = None) -> list[Trace]:
    """Reads the sentences of a file.

    Args:
        path: a file that `--decoding-stats` wrote.
        wanted: numbers of the sentences to return, in this order; None for all, by number.
        limit: largest number of sentences; None for no limit.

    Raises:
        AggdecError: the file has another format, has no drafts, or lacks a sentence.
        OSError: the file cannot be read.
    """
    traces: dict[int, Trace] = {}
    for line_number, line in enumerate(read_text_lines(path), start=1):
        where = f"{path}, line {line_number}"
        try:
            record = parse_json(line, where, "decode again")
            if "drafts" not in record:
                raise AggdecError(f"{where}: has no drafts; decode with --decoding-stats and --retain-iter-history")
            trace = _trace(record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise AggdecError(f"{where}: not of --decoding-stats ({error!r}); decode again") from error
        traces[trace.number] = trace
    if missing := [number for number in wanted or () if number not in traces]:
        raise AggdecError(f"{path}: has no sentences {', '.join(map(str, missing))}")
    chosen = wanted if wanted is not None else sorted(traces)
    return [traces[number] for number in chosen][:limit]


def _trace(record: dict[str, Any]) -> Trace:
    drafts, output = record["drafts"], record["output"]
    accepted, committed = record["accepted_per_iteration"], record["committed_per_iteration"]
    if sum(committed) != len(output) or len(drafts) != len(committed):
        raise ValueError("counters do not fit the output")
    stats = SentenceStats([len(draft) for draft in drafts], accepted, committed)
    return Trace(int(record["id"]), list(map(str, record["source"])), segments(output, stats, drafts))
