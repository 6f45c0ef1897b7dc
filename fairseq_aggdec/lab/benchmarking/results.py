"""What a mode did with the sentences, as long as the process lasts; `record` keeps what is worth keeping."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.lab.benchmarking.modes import Mode


@dataclass
class Output:
    """One decoded sentence."""

    tokens: list[int]
    """of the target dictionary, EOS included"""
    stats: SentenceStats | None = None
    """of this plugin's modes"""
    hypothesis: dict[str, Any] | None = None
    """fairseq's"""
    lists: list[int] = field(default_factory=list)
    """the tokens of all hypotheses of fairseq's, one behind the other"""
    passes: int | None = None
    """of a non-autoregressive peer's decoder"""


class Timed:
    """Arithmetic on the times of a mode's rounds."""

    latencies: list[list[float]]
    """seconds of each batch, one list a round"""

    @property
    def rounds(self) -> list[float]:
        """Seconds for all sentences, one entry a round."""
        return [sum(latencies) for latencies in self.latencies]

    @property
    def seconds(self) -> float:
        """Median of the rounds."""
        return median(self.rounds)


@dataclass
class ModeResult(Timed):
    """What one mode did with all sentences."""

    mode: Mode
    batch_size: int
    batches: list[list[int]]
    """the sentences' numbers, in the order of decoding"""
    latencies: list[list[float]] = field(default_factory=list)
    """seconds of each batch, one list a round"""
    outputs: dict[int, Output] = field(default_factory=dict)
    """of the last round, by sentence number"""
