"""Times all modes on the same batches, in turns.

Batch after batch is decoded; CTranslate2 does so in a process of its own, which waits while others decode. The modes
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
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.progress import Progress

WARM_UP_BATCHES = 3
_UNSTEADY = 2.0
"""a slowest round that takes more than so many times the fastest one's time is said"""


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
    """the tokens of all hypotheses that fairseq's generator returns, one hypothesis after the other"""
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
        by_number = {
            n: time
            for batch, time in zip(self.batches, times, strict=True)
            for n in batch
        }
        return [by_number[number] for number in sorted(by_number)]

    def speed_ups_over(self, other: "ModeResult") -> list[float]:
        """Speed-up of each sentence over another mode, by its number."""
        pairs = zip(other.sentence_latencies, self.sentence_latencies, strict=True)
        return [slow / fast for slow, fast in pairs]

    @property
    def lists(self) -> dict[int, list[int]]:
        """`Output.lists` by sentence number."""
        return {number: output.lists for number, output in self.outputs.items()}


class ModeRunner(Protocol):
    """One mode, ready to decode its batches."""

    mode: Mode
    batches: list[list[int]]
    """numbers of the sentences in each batch"""

    def decode(self, number: int) -> Any:
        """Decode one batch; this call is timed."""

    def outputs(self, number: int, decoded: Any) -> dict[int, Output]:
        """The result of `decode` for a batch, by sentence number."""

    def wait(self) -> None:
        """Wait until the device has finished its work."""


def compare(
    runners: Sequence[ModeRunner],
    repeats: int = 3,
    until: float = math.inf,
    most: float = math.inf,
) -> list[ModeResult]:
    """Decode all batches with every mode, `repeats` times; says on stderr whose rounds differ much.

    Args:
        runners: one runner for each mode.
        repeats: number of rounds over all batches.
        until: when no further round begins, on the clock of `time.monotonic`.
        most: seconds of the first runner's first round; what it does not reach is left out of all runners' batches.

    Returns:
        one result for each mode, in the given order.
    """
    results = [ModeResult(runner.mode, runner.batches) for runner in runners]
    steps = (
        None
        if most < math.inf
        else repeats * sum(len(runner.batches) for runner in runners)
    )
    with Progress(steps, " batches") as bar:
        for runner in runners:
            bar.set_description(f"{runner.mode.name}, warming up", refresh=False)
            warm_up(runner)
        for number in range(repeats):
            if number > 0 and time.monotonic() > until:
                break
            for runner, result in zip(runners, results, strict=True):
                bar.set_description(
                    f"{runner.mode.name}, batch size {result.batch_size}", refresh=False
                )
                run_once(
                    runner, result, lambda _: bar.update(), time.monotonic() + most
                )
                if most < math.inf:
                    for other in runners:
                        del other.batches[len(result.latencies[0]) :]
                    most = math.inf
    for result in results:
        fastest, slowest = min(result.rounds), max(result.rounds)
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
    for number in range(len(runner.batches))[:WARM_UP_BATCHES]:
        runner.decode(number)
        if time.monotonic() > until:
            break
    runner.wait()


def run_once(
    runner: ModeRunner,
    result: ModeResult,
    after_batch: Callable[[int], Any],
    until: float = math.inf,
) -> None:
    """Time one round over all batches, and add its times and outputs to `result`.

    `after_batch` is called with the number of sentences of each batch; after `until`, on the clock of
    `time.monotonic`, no further one is decoded.
    """
    latencies = []
    for number, batch in enumerate(runner.batches):
        runner.wait()
        began = time.perf_counter()
        decoded = runner.decode(number)
        runner.wait()
        latencies.append(time.perf_counter() - began)
        result.outputs.update(runner.outputs(number, decoded))
        after_batch(len(batch))
        if time.monotonic() > until:
            break
    result.latencies.append(latencies)


def decode_once(
    runner: ModeRunner, after_batch: Callable[[int], Any] = lambda count: None
) -> ModeResult:
    """The result of one round, without a warm-up."""
    result = ModeResult(runner.mode, runner.batches)
    run_once(runner, result, after_batch)
    return result
