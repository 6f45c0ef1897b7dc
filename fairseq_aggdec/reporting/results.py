"""What an experiment has come to, in one file: scores, counters and times with their machines and commands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.benchmarking.accepted_blocks import mean_accepted_block
from fairseq_aggdec.benchmarking.record import Record, Run
from fairseq_aggdec.benchmarking.tables import identity
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.structured_files import made_of, read_json

FORMAT = 1


@dataclass
class Decoding:
    """Counters of one decoded test set (`--decoding-stats`): sums over its sentences."""

    subset: str
    label: str
    sentences: int
    iterations: int
    tokens: int
    """of the outputs, EOS counted"""
    drafted: int
    accepted: int
    seconds: float | None = None
    """of all sentences, where each was decoded alone"""
    command: str | None = None


@dataclass
class Measured:
    """One mode at one batch size, as aggdec bench timed it."""

    mode: str
    precision: str
    batch_size: int
    sentences: int
    tokens: int
    """of the outputs, EOS counted"""
    seconds: float
    """median of the rounds"""
    rounds: list[float]
    iterations: int | None
    drafted: int | None
    accepted: int | None
    accepted_block: float | None
    """k-hat of papers/004"""
    bleu: float | None
    modules: dict[str, float] | None
    """seconds by module of one round"""
    host_bytes: int | None
    device_bytes: int | None
    identical: str
    """outputs that are greedy decoding's"""


@dataclass
class Measurement:
    """One call of aggdec bench."""

    name: str
    """its file in the work folder, without suffix"""
    title: str
    command: str
    date: str
    commit: str | None
    machine: dict[str, Any]
    runs: list[Measured] = field(default_factory=list)


@dataclass
class Results:
    """All of an experiment."""

    experiment: str
    title: str
    stand_in: bool
    """for an experiment of the papers, on other data and with other models"""
    date: str
    commit: str | None
    command: str
    machine: dict[str, Any]
    """that computed the scores"""
    scores: list[dict[str, Any]] = field(default_factory=list)
    """a `ScoreTable.record()` each decoded test set, and fairseq's name of that as `subset`"""
    decodings: list[Decoding] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    format: int = FORMAT

    def save(self, path: Path) -> None:
        """Writes JSON."""
        with written_whole(path) as partial:
            partial.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def measured_of(run: Run, runs: list[Run]) -> Measured:
    """What is kept of a mode.

    Args:
        run: the mode.
        runs: all modes of the same batch size.
    """
    return Measured(
        mode=run.mode,
        precision=run.precision,
        batch_size=run.batch_size,
        sentences=len(run.tokens),
        tokens=sum(run.tokens),
        seconds=run.seconds,
        rounds=[round(seconds, 6) for seconds in run.rounds],
        iterations=_sum(run.iterations),
        drafted=_sum(run.drafted),
        accepted=_sum(run.accepted),
        accepted_block=mean_accepted_block(run) if run.iterations else None,
        bleu=run.bleu,
        modules=run.modules,
        host_bytes=run.host_bytes,
        device_bytes=run.device_bytes,
        identical=identity(run, runs),
    )


def measurement_of(name: str, record: Record) -> Measurement:
    """What is kept of a record of aggdec bench: sums and medians, not each sentence."""
    runs = [measured_of(run, record.at(run.batch_size)) for run in record.runs]
    return Measurement(name, record.title, record.command, record.date, record.commit, record.machine, runs)


def load_results(path: Path) -> Results:
    """Reads what `Results.save` wrote.

    Raises:
        AggdecError: it is something else.
        OSError: it cannot be read.
    """
    content = read_json(path, "give what aggdec report experiment wrote")
    if not isinstance(content, dict) or content.get("format") != FORMAT or "decodings" not in content:
        raise AggdecError(f"{path}: not written by this version of aggdec report experiment; run it again")
    results: Results = made_of(Results, content, str(path), "write it again")
    return results


def _sum(counts: list[int] | None) -> int | None:
    return None if counts is None else sum(counts)
