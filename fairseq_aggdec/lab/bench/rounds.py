"""Times all modes on the same batches, in turns.

Batch after batch is decoded; CTranslate2 does so in another process, which waits while others decode. The modes
take turns, round by round, so that a machine that slows down slows all of them. Before the first round, each mode
decodes a few batches untimed. The device is waited for before each reading of the clock.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.verify.differences import Difference
from fairseq_aggdec.progress import Progress

WARM_UP_BATCHES = 3
_UNSTEADY = 2.0
"""a slowest round that takes more than so many times the fastest one's time is said"""


@dataclass
class Output:
    """One decoded sentence."""

    tokens: list[int]
    """token ids of the target dictionary, EOS included"""
    stats: SentenceStats | None = None
    """counters; None for other programs"""
    hypothesis: dict[str, Any] | None = None
    """the hypothesis as fairseq's generator returns it; None for other programs"""
    lists: list[int] = field(default_factory=list)
    """the tokens of all hypotheses that fairseq's generator returns, one hypothesis after the other"""
    passes: int | None = None
    """decoder passes of a non-autoregressive model; None for all others"""


class ModeRunner(Protocol):
    """One mode, ready to decode its batches."""

    mode: ModeSpec
    batches: list[list[int]]
    """ids of the sentences in each batch"""

    def decode(self, index: int) -> Any:
        """Decode one batch; this call is timed."""

    def outputs(self, index: int, decoded: Any) -> dict[int, Output]:
        """The result of `decode` for a batch, by sentence id."""

    def wait(self) -> None:
        """Wait until the device has finished its work."""


@dataclass
class ModeResult:
    """Results of one mode for all sentences."""

    runner: ModeRunner
    latencies: list[list[float]] = field(default_factory=list)
    """seconds of each batch, one list for each round"""
    outputs: dict[int, Output] = field(default_factory=dict)
    """outputs of the last round, by sentence id"""
    differences: list[Difference] | None = None
    """of a lossless mode, from the outputs that it promises; None if it was not compared"""

    @property
    def mode(self) -> ModeSpec:
        """The mode."""
        return self.runner.mode

    @property
    def has_faults(self) -> bool:
        """Whether outputs differ from those that the mode promises, and rounding does not explain it."""
        return any(not found.near_tie for found in self.differences or ())

    @property
    def batch_size(self) -> int:
        """Sentences in the largest batch."""
        return max(map(len, self.runner.batches), default=0)

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
        """Seconds of each sentence by its id: the time of its whole batch, median of the rounds."""
        times = map(median, zip(*self.latencies, strict=True))
        by_sentence = {
            sentence: time
            for batch, time in zip(self.runner.batches, times, strict=True)
            for sentence in batch
        }
        return [time for _, time in sorted(by_sentence.items())]

    def speed_ups_over(self, other: "ModeResult") -> list[float]:
        """Speed-up of each sentence over another mode, by its id."""
        pairs = zip(other.sentence_latencies, self.sentence_latencies, strict=True)
        return [slow / fast for slow, fast in pairs]

    @property
    def lists(self) -> dict[int, list[int]]:
        """`Output.lists` by sentence id."""
        return {sentence: output.lists for sentence, output in self.outputs.items()}

    def add_round(
        self, after_batch: Callable[[int], Any], until: float = math.inf
    ) -> None:
        """Decode all batches, timed.

        `after_batch` is called with the count of each batch's sentences; after `until`, on the clock of
        `time.monotonic`, no further one is decoded.
        """
        runner = self.runner
        latencies = []
        for index, batch in enumerate(runner.batches):
            runner.wait()
            began = time.perf_counter()
            decoded = runner.decode(index)
            runner.wait()
            latencies.append(time.perf_counter() - began)
            self.outputs.update(runner.outputs(index, decoded))
            after_batch(len(batch))
            if time.monotonic() > until:
                break
        self.latencies.append(latencies)


def decode_once(
    runner: ModeRunner, after_batch: Callable[[int], Any] = lambda count: None
) -> ModeResult:
    """The result of one round, without a warm-up."""
    result = ModeResult(runner)
    result.add_round(after_batch)
    return result


def compare(
    runners: Sequence[ModeRunner],
    repeats: int = 3,
    until: float = math.inf,
    most: float = math.inf,
) -> list[ModeResult]:
    """Decode all batches with every mode, `repeats` times; says on stderr whose rounds differ much.

    Args:
        runners: one runner for each mode.
        repeats: how many rounds over all batches.
        until: when no further round begins, on the clock of `time.monotonic`.
        most: seconds of the first runner's first round; what it does not reach is left out of all runners' batches.

    Returns:
        one result for each mode, in the given order.
    """
    results = list(map(ModeResult, runners))
    steps = None
    if most == math.inf:
        steps = repeats * sum(len(runner.batches) for runner in runners)
    with Progress(steps, " batches") as bar:
        # untimed: engines arrange weights, caches are filled
        for runner in runners:
            bar.set_description(f"{runner.mode.name}, warming up", refresh=False)
            warm_up(runner)
        # in turns: a machine that slows down slows all modes
        for index in range(repeats):
            if index > 0 and time.monotonic() > until:
                break
            for result in results:
                bar.set_description(
                    f"{result.mode.name}, batch size {result.batch_size}", refresh=False
                )
                result.add_round(lambda _: bar.update(), time.monotonic() + most)
                if most < math.inf:
                    for runner in runners:
                        del runner.batches[len(result.latencies[0]) :]
                    most = math.inf
    for result in results:
        fastest = min(result.rounds)
        slowest = max(result.rounds)
        if slowest > _UNSTEADY * fastest > 0:
            print(
                f"rounds of {result.mode.name} differ by {slowest / fastest:.1f}x: the machine was busy, or a round is "
                "too short to time; repeat it on a quiet one",
                file=sys.stderr,
            )
    return results


def warm_up(runner: ModeRunner) -> None:
    """Decode the first batches, untimed; fewer where they take seconds."""
    until = time.monotonic() + 3
    for index in range(len(runner.batches))[:WARM_UP_BATCHES]:
        runner.decode(index)
        if time.monotonic() > until:
            break
    runner.wait()
