"""A folder of decoded shards.

manifest.json        the settings that all outputs depend on, and a fingerprint of each input
NAME.NUMBER.txt      the outputs of a shard, one in a line; the file has this name only when it is complete
NAME.NUMBER.skipped  the shard's inputs that could not be decoded, where there are any: written before the outputs
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.bulk.settings import STDIN, difference
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import PARTIAL, locked, written_whole
from fairseq_aggdec.structured_files import read

_MANIFEST = "manifest.json"
_LOCK = "lock"
_ADVICE = "go on with those, delete the folder, or choose another"


class Shard(ABC):
    """Inputs that are decoded together: lines of a file, or batches of a split."""

    number: int
    """within the file or split, from 0"""

    @property
    @abstractmethod
    def origin(self) -> str:
        """The name of the file or split."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many inputs it has, and outputs."""

    @property
    def name(self) -> str:
        """The beginning of its files' names, which sort in the order of the shards."""
        return f"{self.origin}.{self.number:06}"


@dataclass(frozen=True)
class Decoded:
    """A shard's outputs."""

    outputs: list[str]
    """one for each input; empty where nothing was decoded"""
    skipped: list[str] = field(default_factory=list)
    """a line, with tabs between its parts, for each input that could not be decoded"""


class ShardFolder:
    """A folder to which processes on several machines can write at once; each file is written whole by one process."""

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], inputs: Mapping[str, str]
    ) -> None:
        """
        Args:
            folder: the folder, which is made if it does not exist.
            settings: the settings that all outputs depend on, in JSON values.
            inputs: a fingerprint of each input; later runs in the folder may have others.

        Raises:
            AggdecError: the folder holds outputs of other settings or inputs, or files of something else.
        """
        self.path = folder
        self._settings = dict(settings)
        self._inputs = dict(inputs)
        self._lock = folder / _LOCK
        if folder.exists() and not folder.is_dir():
            raise AggdecError(f"{folder}: is a file; name a folder")
        folder.mkdir(parents=True, exist_ok=True)
        others = {path.name for path in folder.iterdir()} - {
            STDIN,
            f"{STDIN}{PARTIAL}",
            _LOCK,
        }
        if others and _MANIFEST not in others:
            raise AggdecError(
                f"{folder}: holds files of something else; name a folder of its own"
            )
        with locked(self._lock):
            if any(folder.glob("*.txt")):
                self._check()

    def outputs(self, shard: Shard) -> Path:
        """The file of a shard's outputs."""
        return self.path / f"{shard.name}.txt"

    def is_finished(self, shard: Shard) -> bool:
        """Whether a shard's outputs are there."""
        return self.outputs(shard).is_file()

    def write(self, shard: Shard, decoded: Decoded) -> None:
        """Write a shard's outputs.

        Raises:
            AggdecError: the folder holds outputs of other settings or inputs.
        """
        with locked(self._lock):
            # only now, so that a mistaken option, which is met before any output, can be mended
            self._check(begin=not any(self.path.glob("*.txt")))
            if decoded.skipped:
                self._write(f"{shard.name}.skipped", decoded.skipped)
            self._write(f"{shard.name}.txt", decoded.outputs)

    def read(self, shard: Shard) -> list[str]:
        """The outputs of a finished shard.

        Raises:
            AggdecError: they are not as many as its inputs.
        """
        path = self.outputs(shard)
        outputs = _lines(path)
        if len(outputs) != shard.size:
            raise AggdecError(
                f"{path}: has {len(outputs)} lines for {shard.size} sentences; delete it, and start again"
            )
        return outputs

    def skipped(self, shard: Shard) -> list[str]:
        """What `Decoded.skipped` was of a finished shard."""
        path = self.path / f"{shard.name}.skipped"
        return _lines(path) if path.is_file() else []

    def write_list(self, name: str, lines: list[str]) -> None:
        """Write a file of another name, with these lines."""
        with locked(self._lock):
            self._write(name, lines)

    def _check(self, begin: bool = False) -> None:
        """Compare the manifest with this run, and add the run's inputs to it; `begin` writes a new manifest."""
        path = self.path / _MANIFEST
        found: dict[str, Any] = {"settings": self._settings, "inputs": {}}
        if not begin:
            found = read(path, dict[str, Any], _ADVICE)
        if other := difference(self._settings, found["settings"], "now", "there"):
            raise AggdecError(
                f"{self.path}: was begun with other settings ({other}); {_ADVICE}"
            )
        for name, fingerprint in self._inputs.items():
            if found["inputs"].get(name, fingerprint) != fingerprint:
                raise AggdecError(
                    f"{self.path}: holds outputs of {name} as it was before a change; {_ADVICE}"
                )
        if begin or not self._inputs.keys() <= found["inputs"].keys():
            content = {
                "settings": self._settings,
                "inputs": {**found["inputs"], **self._inputs},
            }
            self._write(_MANIFEST, [json.dumps(content, indent=1, sort_keys=True)])

    def _write(self, name: str, lines: Iterable[str]) -> None:
        with written_whole(self.path / name) as partial:
            text = "".join(f"{line}\n" for line in lines)
            partial.write_text(text, encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]
