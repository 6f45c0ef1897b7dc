"""The file of `--decoding-stats`: one JSON line for each sentence."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.edit_ratio import edit_ratio


class StatsFile:
    """Writes each record at once, so that a killed run loses no earlier record."""

    def __init__(self, path: str) -> None:
        """Open and empty a file.

        Raises `AggdecError` where the file cannot be written, or has other contents than such records.
        """
        try:
            if os.path.isfile(path) and not _holds_records(path):
                raise AggdecError(
                    f"--decoding-stats {path}: is a file that this option did not write; name another one, or delete it"
                )
            self._file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise AggdecError(
                f"--decoding-stats {path}: cannot be written ({error.strerror})"
            ) from error

    def close(self) -> None:
        """Close the file; nothing can be written to it afterwards."""
        self._file.close()

    def write(
        self,
        sentence_id: int,
        source: Sequence[int] | int,
        sentence: Decoded,
        seconds: float | None,
        text: Mapping[str, Any] | None = None,
    ) -> None:
        """Append a sentence.

        `sentence_id`: fairseq's.
        `source`: without EOS and in the target's vocabulary; its length where it is no text.
        `seconds`: the wall time from encoder to output; None where the sentence was not decoded alone.
        `text`: `source` (without EOS), `output` and the `drafts` of all iterations in symbols of the dictionaries.

        Raises `AggdecError` where the file cannot be written, for example on a full disk.
        """
        output = sentence.tokens[:-1]
        stats = sentence.stats
        record = {
            "id": sentence_id,
            "source_length": source if isinstance(source, int) else len(source),
            "output_length": len(output),
            "iterations": stats.iterations,
            "drafted": sum(stats.drafted),
            "accepted": sum(stats.accepted),
            "accepted_per_iteration": stats.accepted,
            "seconds": seconds,
            "edit_ratio": None
            if isinstance(source, int)
            else round(edit_ratio(source, output), 4),
        }
        if text is not None:
            record |= {"committed_per_iteration": stats.committed, **text}
        try:
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise AggdecError(
                f"--decoding-stats {self._file.name}: cannot be written ({error.strerror})"
            ) from error


def _holds_records(path: str) -> bool:
    """Whether a file is empty or begins with a record of `StatsFile`."""
    beginning = b'{"id": '
    with open(path, "rb") as file:
        return file.read(len(beginning)) in (b"", beginning)
