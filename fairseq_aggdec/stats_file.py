"""`--decoding-stats`: one JSON line a sentence."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.evaluation.edit_ratio import edit_ratio


@dataclass(frozen=True)
class DecodedText:
    """A sentence in symbols of the dictionaries, where drafts are kept (`--retain-iter-history`)."""

    source: list[str]
    """without EOS"""
    output: list[str]
    """with EOS"""
    drafts: list[list[str]]
    """of each iteration"""


class StatsFile:
    """Writes records as they come, each flushed, so that a killed run loses none."""

    def __init__(self, path: str) -> None:
        """Open `path`, replacing what was there.

        Raises:
            AggdecError: it cannot be written.
        """
        try:
            self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)
        except OSError as error:
            raise AggdecError(f"--decoding-stats {path}: cannot be written ({error.strerror})") from error

    def write(
        self,
        sentence_id: int,
        source: Sequence[int],
        output: Sequence[int],
        stats: SentenceStats,
        seconds: float | None,
        text: DecodedText | None = None,
    ) -> None:
        """Append one sentence.

        Args:
            sentence_id: fairseq's number of it.
            source: source tokens without EOS, in the target's vocabulary.
            output: output tokens without EOS.
            stats: its trace.
            seconds: wall time from encoder to output where the sentence was decoded alone.
            text: what `aggdec-report trace` shows.
        """
        record = {
            "id": sentence_id,
            "source_length": len(source),
            "output_length": len(output),
            "iterations": stats.iterations,
            "drafted": sum(stats.drafted),
            "accepted": sum(stats.accepted),
            "accepted_per_iteration": stats.accepted,
            "seconds": seconds,
            "edit_ratio": round(edit_ratio(source, output), 4),
        }
        if text is not None:
            record |= {"committed_per_iteration": stats.committed, **asdict(text)}
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()
