"""The results of an experiment in one JSON file: scores, counters and times, with machines and commands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking.image_record import Quality
from fairseq_aggdec.lab.benchmarking.record import Record
from fairseq_aggdec.lab.evaluation.training_log import Validation
from fairseq_aggdec.structured_files import made_of, read_json

FORMAT = 2
"""version of the format; version 1 had sums in place of records"""


@dataclass
class Decoding:
    """Counters of one decoded test set (`--decoding-stats`), summed over its sentences."""

    subset: str
    label: str
    sentences: int
    iterations: int
    tokens: int
    """output tokens, EOS counted"""
    drafted: int
    accepted: int
    seconds: float | None = None
    """seconds for all sentences; None unless each was decoded alone"""
    command: str | None = None

    @property
    def mean_iterations(self) -> float | None:
        """Mean iterations of a sentence; None if they were not counted."""
        return self.iterations / self.sentences if self.iterations else None

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Mean committed tokens of an iteration, the verifier's own included; None if they were not counted."""
        return self.tokens / self.iterations if self.iterations else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted draft tokens divided by all draft tokens; None if they were not counted."""
        return self.accepted / max(1, self.drafted) if self.iterations else None


@dataclass
class Results:
    """All results of an experiment."""

    experiment: str
    title: str
    stand_in: bool
    """whether it replaces an experiment of the papers, with other data and models"""
    date: str
    commit: str | None
    command: str
    machine: dict[str, Any]
    """the machine that computed the scores"""
    scores: list[dict[str, Any]] = field(default_factory=list)
    """`ScoreTable.record()` of each decoded test set, with fairseq's name of the set as `subset`"""
    decodings: list[Decoding] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    """records of aggdec bench, by path in the work folder without suffix"""
    images: dict[str, dict[str, Quality]] = field(default_factory=dict)
    """image quality by record and by mode, or `bicubic` for bicubic enlargement"""
    trainings: dict[str, list[Validation]] = field(default_factory=dict)
    """validations of drafters' trainings, by folder in the work folder"""
    format: int = FORMAT

    def save(self, path: Path) -> None:
        """Writes JSON with one line for each field."""
        entries = [f' "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in asdict(self).items()]
        with written_whole(path) as partial:
            partial.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


def load_results(path: Path) -> Results:
    """Reads what `Results.save` wrote.

    Raises:
        AggdecError: the file has another format.
        OSError: the file cannot be read.
    """
    content = read_json(path, "give what aggdec report experiment wrote")
    if not isinstance(content, dict) or content.get("format") != FORMAT or "decodings" not in content:
        raise AggdecError(f"{path}: not written by this version of aggdec report experiment; run it again")
    results: Results = made_of(Results, content, str(path), "write it again")
    return results
