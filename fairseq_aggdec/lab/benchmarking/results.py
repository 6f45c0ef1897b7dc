"""Results of a mode while the process lasts: outputs, counters and times. `record` stores a part of them."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.lab.benchmarking.modes import Mode


@dataclass
class Output:
    """One decoded sentence."""

    tokens: list[int]
    """token numbers of the target dictionary, EOS included"""
    stats: SentenceStats | None = None
    """counters; None for other programs"""
    hypothesis: dict[str, Any] | None = None
    """the hypothesis as fairseq's generator returns it; None for other programs"""
    lists: list[int] = field(default_factory=list)
    """the tokens of all hypotheses that fairseq's generator returns, one hypothesis behind the other"""
    passes: int | None = None
    """decoder passes of a non-autoregressive model; None for all others"""


@dataclass
class ModeResult:
    """Results of one mode for all sentences."""

    mode: Mode
    batches: list[list[int]]
    """numbers of the sentences in each batch, in the order of decoding"""
    latencies: list[list[float]] = field(default_factory=list)
    """seconds of each batch, one list for each round"""
    outputs: dict[int, Output] = field(default_factory=dict)
    """outputs of the last round, by sentence number"""

    @property
    def batch_size(self) -> int:
        """Sentences in the largest batch."""
        return max(map(len, self.batches), default=0)

    @property
    def rounds(self) -> list[float]:
        """Seconds of each round over all sentences."""
        return [sum(latencies) for latencies in self.latencies]

    @property
    def seconds(self) -> float:
        """Seconds of a round over all sentences, median of the rounds."""
        return median(self.rounds)

    @property
    def sentence_latencies(self) -> list[float]:
        """Seconds of each sentence by its number: the time of its whole batch, median of the rounds."""
        times = map(median, zip(*self.latencies, strict=True))
        by_number = {n: time for batch, time in zip(self.batches, times, strict=True) for n in batch}
        return [by_number[number] for number in sorted(by_number)]
