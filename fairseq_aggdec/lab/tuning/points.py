"""The measurements of a sweep over GAD++'s hyperparameters, and their file: JSON, one measurement in each line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, written_whole
from fairseq_aggdec.shards.settings import difference
from fairseq_aggdec.structured_files import made_of, parse_json


@dataclass(frozen=True, order=True)
class Setting:
    """Hyperparameters of GAD++ (papers/000 §3.2.3)."""

    block_size: int
    """k: tokens of a draft"""
    beta: int
    """β: an accepted draft token is among the verifier's β best tokens"""
    tolerance: float
    """τ: its log-probability is at most τ (nats) below that of the best token"""

    def __str__(self) -> str:
        return f"k {self.block_size}, β {self.beta}, τ {self.tolerance:g}"


def all_settings(sizes: Sequence[int], betas: Sequence[int], tolerances: Sequence[float]) -> list[Setting]:
    """All combinations of block size, β and τ."""
    return [Setting(size, beta, tolerance) for size in sizes for beta in betas for tolerance in tolerances]


@dataclass(frozen=True)
class Baselines:
    """Scores and times of the same sentences without drafts."""

    beam: int
    beam_quality: float
    beam_seconds: float
    """seconds for all sentences, median of the rounds"""
    greedy_quality: float
    greedy_seconds: float
    """seconds of greedy decoding in the same rounds"""


@dataclass(frozen=True)
class Point:
    """A measured setting."""

    setting: Setting
    quality: float
    accepted: float
    """mean accepted tokens: committed tokens of an iteration, the verifier's own included"""
    seconds: float
    """seconds for all sentences, median of the rounds"""
    greedy_seconds: float
    """seconds of greedy decoding in the same rounds"""

    @property
    def speed_up_over_greedy(self) -> float:
        """Speed-up over greedy decoding in the same rounds."""
        return self.greedy_seconds / self.seconds


@dataclass
class Sweep:
    """A file of measured points.

    Attributes:
        path: path of the file.
        conditions: settings that must stay the same for points to be comparable.
        baselines: None until they are measured.
        points: measured points by setting.
    """

    path: Path
    conditions: dict[str, Any]
    baselines: Baselines | None = None
    points: dict[Setting, Point] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, conditions: dict[str, Any]) -> Sweep:
        """Creates a file, or opens one that was measured under the same conditions.

        Raises:
            AggdecError: the file was measured under other conditions, or has another format.
            OSError: the file cannot be read or written.
        """
        sweep = cls(path, conditions)
        if not path.exists():
            with written_whole(path) as partial:
                partial.write_text(_line("conditions", conditions), encoding="utf-8")
            return sweep
        stored = path.read_bytes()
        whole = stored[: stored.rfind(b"\n") + 1]  # a run that was killed may have left half a line
        sweep._read(decode_text(whole, str(path)))
        if whole != stored:
            with written_whole(path) as partial:
                partial.write_bytes(whole)
        return sweep

    def _read(self, text: str) -> None:
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            where, advice = f"{self.path}, line {number}", "name another file"
            try:
                (kind, content), *rest = parse_json(line, where, advice).items()
                known = {"conditions", "baselines", "point"}
                if rest or kind not in known or (kind == "conditions") != (number == 1):
                    raise ValueError(kind)
                if kind == "baselines":
                    self.baselines = made_of(Baselines, content, where, advice)
                elif kind == "point":
                    point = made_of(Point, content, where, advice)
                    self.points[point.setting] = point
            except (ValueError, AttributeError):
                raise AggdecError(f"{where}: not written by aggdec tune; {advice}") from None
            if kind == "conditions" and (other := difference(self.conditions, content, "now", "there")):
                raise AggdecError(
                    f"{self.path}: was measured under other conditions ({other}); numbers would not compare: {advice}"
                )
        if not text:
            raise AggdecError(f"{self.path}: not written by aggdec tune; delete it or name another file")

    def add(self, *found: Baselines | Point) -> None:
        """Adds measurements, and appends them to the file."""
        with self.path.open("a", encoding="utf-8") as output:
            for entry in found:
                if isinstance(entry, Baselines):
                    self.baselines = entry
                    output.write(_line("baselines", asdict(entry)))
                else:
                    self.points[entry.setting] = entry
                    output.write(_line("point", asdict(entry)))

    def missing(self, settings: Sequence[Setting]) -> list[Setting]:
        """The settings that are not measured yet."""
        return [setting for setting in dict.fromkeys(settings) if setting not in self.points]


def _line(kind: str, content: dict[str, Any]) -> str:
    return json.dumps({kind: content}, ensure_ascii=False) + "\n"
