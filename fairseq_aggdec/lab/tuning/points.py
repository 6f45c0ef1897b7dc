"""What a sweep over GAD++'s hyperparameters measures, and the file that keeps it: JSON, a line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.structured_files import made_of, parse_json


@dataclass(frozen=True, order=True)
class Setting:
    """Hyperparameters of GAD++ (papers/000 §3.2.3)."""

    block_size: int
    """k"""
    beta: int
    """a drafted token must be among the verifier's best β"""
    tolerance: float
    """τ: and its log-probability at most this much below the best one's"""

    def __str__(self) -> str:
        return f"k {self.block_size}, β {self.beta}, τ {self.tolerance:g}"


@dataclass(frozen=True)
class Baselines:
    """What the same sentences cost and score without drafts."""

    beam: int
    beam_quality: float
    beam_seconds: float
    """median of the rounds, all sentences"""
    greedy_quality: float
    greedy_seconds: float
    """in the same rounds"""


@dataclass(frozen=True)
class Point:
    """A setting, measured."""

    setting: Setting
    quality: float
    accepted: float
    """mean accepted tokens: committed tokens an iteration, the verifier's own included"""
    seconds: float
    """median of the rounds, all sentences"""
    greedy_seconds: float
    """of greedy decoding in the same rounds"""

    @property
    def speed_up_over_greedy(self) -> float:
        """From the same rounds."""
        return self.greedy_seconds / self.seconds


@dataclass
class Sweep:
    """A file of measured points.

    Attributes:
        path: of the file.
        conditions: all that must stay the same for points to be comparable.
        baselines: None as long as they are not measured.
        points: by setting.
    """

    path: Path
    conditions: dict[str, Any]
    baselines: Baselines | None = None
    points: dict[Setting, Point] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, conditions: dict[str, Any]) -> Sweep:
        """Begins a file, or takes up one that was begun under the same conditions.

        Raises:
            AggdecError: the file was measured under other conditions, or is no such file.
            OSError: it cannot be read or written.
        """
        sweep = cls(path, conditions)
        if not path.exists():
            with written_whole(path) as partial:
                partial.write_text(_line("conditions", conditions), encoding="utf-8")
            return sweep
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a run that was killed may have left half a line
        sweep._read(whole)
        if whole != text:
            with written_whole(path) as partial:
                partial.write_text(whole, encoding="utf-8")
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
            if kind == "conditions" and content != self.conditions:
                other = [
                    name for name in {**content, **self.conditions} if content.get(name) != self.conditions.get(name)
                ]
                name = other[0]
                raise AggdecError(
                    f"{self.path}: was measured with another {name} ({content.get(name)}, now "
                    f"{self.conditions.get(name)}); numbers would not compare: name another file"
                )
        if not text:
            raise AggdecError(f"{self.path}: is empty; delete it or name another file")

    def add(self, *found: Baselines | Point) -> None:
        """Keeps what was measured, in the file too."""
        with self.path.open("a", encoding="utf-8") as output:
            for entry in found:
                if isinstance(entry, Baselines):
                    self.baselines = entry
                    output.write(_line("baselines", asdict(entry)))
                else:
                    self.points[entry.setting] = entry
                    output.write(_line("point", asdict(entry)))

    def missing(self, settings: Sequence[Setting]) -> list[Setting]:
        """Those of the settings that are not measured yet."""
        return [setting for setting in dict.fromkeys(settings) if setting not in self.points]


def _line(kind: str, content: dict[str, Any]) -> str:
    return json.dumps({kind: content}, ensure_ascii=False) + "\n"
