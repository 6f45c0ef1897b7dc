"""The measurements of a sweep over GAD++'s hyperparameters, their file, and which settings they choose.

The authors (papers/000 §4.2.3) call two settings "high-quality" and "high-efficiency", and give no rule. The rule
here, on the development set: high-quality is the fastest setting that scores at least `margin` above greedy decoding,
high-efficiency the fastest that scores at most `loss` below it. On the numbers of papers/000 Table 7, a margin of 0.4
and a loss of -0.2 (0.2 above greedy) choose β = 5, τ = 1 and β = 5, τ = 3; the authors took β = 3, τ = 1 and β = 5,
τ = 3. The scores of a development set are uncertain, so the margin should not be too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec import structured_files
from fairseq_aggdec.bulk.settings import difference
from fairseq_aggdec.errors import AggdecError


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
    """What a file of a sweep holds."""

    conditions: dict[str, Any]
    """settings that must stay the same for points to be comparable"""
    baselines: Baselines | None = None
    """None until they are measured"""
    points: list[Point] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, conditions: dict[str, Any]) -> Sweep:
        """Read a file that was measured under the same conditions, or begin a new sweep if there is none.

        Raises:
            AggdecError: the file was measured under other conditions, or is another kind of file.
            OSError: the file cannot be read.
        """
        if not path.exists():
            return cls(conditions)
        sweep = structured_files.read(path, cls, "not written by aggdec tune; name another file")
        if other := difference(conditions, sweep.conditions, "now", "there"):
            raise AggdecError(
                f"{path}: was measured under other conditions ({other}); numbers would not compare: name another file"
            )
        return sweep

    def of(self, settings: Iterable[Setting]) -> list[Point]:
        """The points of the settings that are measured."""
        by_setting = {point.setting: point for point in self.points}
        return [by_setting[setting] for setting in settings if setting in by_setting]


def fastest(points: Iterable[Point], least_quality: float) -> Point | None:
    """The fastest point with at least this quality; None if there is none.

    Speed is the speed-up over greedy decoding in the same rounds. Of equally fast points, the one with the higher
    quality wins, then the smaller setting.
    """
    good = [point for point in points if point.quality >= least_quality]
    return min(good, key=lambda point: (-point.speed_up_over_greedy, -point.quality, point.setting), default=None)


def chosen(sweep: Sweep, margin: float, loss: float) -> dict[str, Point | None]:
    """The point of each name that the rule chooses; None where no point is good enough."""
    assert sweep.baselines is not None
    greedy = sweep.baselines.greedy_quality
    return {
        "high-quality": fastest(sweep.points, greedy + margin),
        "high-efficiency": fastest(sweep.points, greedy - loss),
    }
