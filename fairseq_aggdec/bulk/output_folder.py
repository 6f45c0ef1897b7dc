"""The output folder of `aggdec decode`.

settings.json               the settings that all outputs depend on; written with the first of them
NAME.NUMBER.txt             the outputs of a shard, one in a line
records/NAME.NUMBER.json    written when that file is complete: checksums of lines and outputs, skipped lines
skipped.tsv                 written when all shards are complete: the lines that could not be decoded, and why
"""

from __future__ import annotations

import fcntl
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairseq_aggdec.bulk.shards import DecodedShard, Shard
from fairseq_aggdec.distillation.settings import difference
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.structured_files import read_json

_SETTINGS = "settings.json"


class OutputFolder:
    """Several processes can write to it at once, even the same shard: each file is always wholly one process's."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """
        Args:
            folder: the folder, which is made if it does not exist.
            settings: the settings that outputs depend on, in JSON values.

        Raises:
            AggdecError: it holds outputs of other settings, or files that are not of `aggdec decode`.
        """
        self.folder = folder
        self._settings = settings
        if folder.exists() and not folder.is_dir():
            raise AggdecError(f"--output {folder}: is a file; name a folder")
        if folder.is_dir() and not (folder / "records").is_dir() and any(folder.iterdir()):
            raise AggdecError(f"--output {folder}: holds files of something else; name a folder of its own")
        (folder / "records").mkdir(parents=True, exist_ok=True)
        if (folder / _SETTINGS).exists():
            self._check_settings()

    def refuse_shards_behind(self, shards: Sequence[Shard]) -> None:
        """Raises `AggdecError` where there are outputs of shards that come behind these, as of a longer file."""
        numbers = Counter(Path(shard.path).name for shard in shards)
        for path in sorted(self.folder.glob("*.txt")):
            name, _, number = path.stem.rpartition(".")
            if name in numbers and number.isdecimal() and int(number) >= numbers[name]:
                raise AggdecError(
                    f"{path}: was made from other lines than {name} has now, which has fewer; delete it, or choose "
                    "another --output"
                )

    @property
    def skipped_file(self) -> Path:
        """The file that lists the lines which could not be decoded."""
        return self.folder / "skipped.tsv"

    def outputs(self, shard: Shard) -> Path:
        """The file of a shard's outputs."""
        return self.folder / f"{shard.name}.txt"

    def is_finished(self, shard: Shard) -> bool:
        """Whether a shard's outputs are complete.

        Raises:
            AggdecError: they were made from other lines.
        """
        record, outputs = self._record(shard), self.outputs(shard)
        if record is None or not outputs.is_file() or record["outputs"] != zlib.crc32(outputs.read_bytes()):
            return False
        if record["source"] != shard.checksum:
            raise AggdecError(
                f"{outputs}: was made from other lines than {shard.path} has there now; delete it to have it made "
                "again, or choose another --output"
            )
        return True

    def write(self, decoded: DecodedShard) -> None:
        """Write a shard's outputs and its record.

        Raises:
            AggdecError: the folder holds outputs of other settings.
        """
        text = "".join(f"{line}\n" for line in decoded.outputs)
        record = {
            "source": decoded.shard.checksum,
            "outputs": zlib.crc32(text.encode()),
            "skipped": decoded.skipped,
        }
        with self._alone():
            # only now, so that a mistaken option, which is met before any output, can be mended
            if not (self.folder / _SETTINGS).exists():
                _write(self.folder / _SETTINGS, json.dumps(self._settings, indent=1, sort_keys=True) + "\n")
            self._check_settings()  # another process may have begun with others
            self._record_file(decoded.shard).unlink(missing_ok=True)
            _write(self.outputs(decoded.shard), text)
            _write(self._record_file(decoded.shard), json.dumps(record))

    def report(self, shards: Iterable[Shard]) -> list[tuple[str, int, str]]:
        """Write the list of skipped lines, and return it: file, number of the line, why.

        Args:
            shards: all shards, which must be finished.
        """
        skipped = [
            (shard.path, number, why)
            for shard in shards
            for number, why in (self._record(shard) or {"skipped": []})["skipped"]
        ]
        with self._alone():
            _write(self.skipped_file, "".join(f"{path}\t{number}\t{why}\n" for path, number, why in skipped))
        return skipped

    def _check_settings(self) -> None:
        begun = read_json(self.folder / _SETTINGS, "choose another --output")
        if differing := difference(self._settings, begun, "now", "there"):
            raise AggdecError(
                f"{self.folder}: was begun with other settings ({differing}); go on with those, or choose another "
                "--output"
            )

    def _record_file(self, shard: Shard) -> Path:
        return self.folder / "records" / f"{shard.name}.json"

    def _record(self, shard: Shard) -> dict[str, Any] | None:
        """What was recorded of a finished shard; None where nothing was, or what is no record, as after a bad copy."""
        path = self._record_file(shard)
        try:
            record = json.loads(path.read_bytes()) if path.is_file() else None
        except ValueError:
            return None
        is_whole = isinstance(record, dict) and record.keys() >= {"source", "outputs", "skipped"}
        return record if is_whole else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Makes other processes wait, so that no two write the same unfinished file."""
        with (self.folder / "records" / "lock").open("ab") as file:
            with suppress(OSError):  # a network file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _write(path: Path, text: str) -> None:
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")
