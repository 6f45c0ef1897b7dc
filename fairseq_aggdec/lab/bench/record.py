"""The record of a benchmark as JSON: medians, spread and counts of each mode, from which all tables are made."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import BEAM, GREEDY
from fairseq_aggdec.lab.bench.machine import Origin
from fairseq_aggdec.lab.bench.rounds import ModeResult

PERCENTILES = (50, 95, 99)
BASELINES = (f"{BEAM}5", f"{BEAM}1", GREEDY)
"""modes over which others are faster, the widest beam first"""
SPEED_UP_STEP = 0.5
_GROUPS = 8  # of sentences, in `by_edit_ratio`


@dataclass
class Times:
    """How long a mode takes."""

    rounds: int
    """how often the sentences were decoded"""
    seconds: float
    """of a round, the median"""
    fastest: float
    """seconds of the fastest round"""
    slowest: float
    """seconds of the slowest round"""
    percentiles: dict[str, float]
    """seconds that a sentence, or the batch that it is in, takes in the median of the rounds, by `PERCENTILES`"""
    speed_up_by_edit_ratio: list[list[float]] | None = None
    """speed-up over `greedy` of about eight groups of sentences: mean edit ratio, median speed-up"""
    speed_ups: list[int] | None = None
    """at batch size 1, how many sentences have a speed-up from 0 to 0.5, from 0.5 to 1, ... over the first of
    `BASELINES` that was timed"""
    modules: dict[str, float] | None = None
    """seconds by module, from one further round"""

    @property
    def are_possible(self) -> bool:
        """Whether a measurement can have them."""
        return (
            self.rounds > 0
            and 0 < self.fastest <= self.seconds <= self.slowest
            and set(self.percentiles) == set(map(str, PERCENTILES))
            and (self.modules is None or sum(self.modules.values()) > 0)
        )


@dataclass
class Counts:
    """What was counted of a mode's outputs: sums over all sentences, and scores."""

    sentences: int
    tokens: int
    """tokens of the outputs, EOS counted"""
    iterations: int | None = None
    """iterations of this plugin's modes; decoder passes of non-autoregressive models"""
    drafted: int | None = None
    """draft tokens; None for other programs"""
    accepted: int | None = None
    """accepted draft tokens; None for other programs"""
    longest_draft: int | None = None
    """tokens of the longest draft, 0 without drafts; None for other programs"""
    identical: int | None = None
    """outputs that are those of `greedy`; None where it was not decoded"""
    compared_with: str | None = None
    """precision of that `greedy`"""
    near_ties: int | None = None
    """of a lossless mode, outputs that rounding made different; None if the mode was not compared"""
    differing: int | None = None
    """of a lossless mode, outputs that differ for another reason; None if the mode was not compared"""
    bleu: float | None = None
    """BLEU of all sentences, 0 to 100"""
    psnr: float | None = None
    """peak signal-to-noise ratio of images in dB, mean over images"""
    same_pixels: float | None = None
    """share of the images' pixels that are the same as with `greedy`"""
    host_bytes: int | None = None
    """peak resident memory of a process that runs this mode alone"""
    device_bytes: int | None = None
    """peak memory that PyTorch allocated on the GPU in that process"""

    @property
    def mean_iterations(self) -> float | None:
        """Mean iterations of a sentence."""
        return None if self.iterations is None else self.iterations / self.sentences

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Mean committed tokens of an iteration, the verifier's choice after the draft and EOS included.

        None for other programs.
        """
        if not self.iterations or self.accepted is None:
            return None
        return self.tokens / self.iterations

    @property
    def mean_accepted_block(self) -> float | None:
        """Mean tokens committed by a pass that verifies a block (k-hat of papers/004).

        The first pass of each sentence verifies no block and is not counted: it commits one token and drafts the first
        block.
        """
        if not self.iterations:
            return None
        return (self.tokens - self.sentences) / max(1, self.iterations - self.sentences)


@dataclass
class Run:
    """One mode at one batch size: what ran, its times and its counts."""

    mode: str
    implementation: str
    """`fairseq`, `fairseq_aggdec` or a peer"""
    precision: str
    batch_size: int
    times: Times
    counts: Counts

    def __post_init__(self) -> None:
        if self.counts.sentences < 1 or not self.times.are_possible:
            raise AggdecError(f"{self.mode}: times or counters that no measurement has")

    @property
    def milliseconds(self) -> float:
        """Of a sentence, the median of the rounds."""
        return 1e3 * self.times.seconds / self.counts.sentences

    def speed_up_over(self, baseline: "Run") -> float:
        """How many times faster than another mode it is."""
        return baseline.times.seconds / self.times.seconds


@dataclass
class Record(Origin):
    """All that one call of `aggdec bench` measured."""

    sentences: int = 0
    source_tokens: int = 0
    """tokens of all sources, EOS counted"""
    edit_ratio: float | None = None
    """mean over sentences of the edit distance between the text that `iad` copies from and the output of `greedy` (of
    the first mode without it), divided by the length of that text; None for images"""
    runs: list[Run] = field(default_factory=list)
    search: dict[str, Any] = field(default_factory=dict)
    """search options that differ from the defaults, under fairseq's names"""
    bicubic_psnr: float | None = None
    """PSNR in dB of the small images after bicubic enlargement"""

    @property
    def batch_sizes(self) -> list[int]:
        """The batch sizes, in the order of the runs."""
        return list(dict.fromkeys(run.batch_size for run in self.runs))

    def at(self, batch_size: int) -> list[Run]:
        """The runs of one batch size."""
        return [run for run in self.runs if run.batch_size == batch_size]

    def save(self, path: Path) -> None:
        """Write JSON with one line for each field and each run; what was not measured is left out."""

        def known(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            # an absent commit would be taken for that of the reader
            return {
                n: value for n, value in pairs if value is not None or n == "commit"
            }

        structured_files.write(path, asdict(self, dict_factory=known))


def load_record(path: Path) -> Record:
    """Read what `Record.save` wrote.

    Raises:
        AggdecError: the file is no record, or damaged.
        OSError: the file cannot be read.
    """
    return structured_files.read(
        path,
        Record,
        "not written by this version of aggdec bench --json; measure again",
    )


def run_of(result: ModeResult, greedy: ModeResult | None = None) -> Run:
    """The part of a mode's result that is recorded; times are rounded to microseconds.

    `greedy`: the result of `greedy`, if it was decoded, in the same precision if it was decoded in that.
    """
    rounds = [round(seconds, 6) for seconds in result.rounds]
    latencies = result.sentence_latencies
    times = Times(
        rounds=len(rounds),
        seconds=round(result.seconds, 6),
        fastest=min(rounds),
        slowest=max(rounds),
        percentiles={
            str(share): round(float(np.percentile(latencies, share)), 8)
            for share in PERCENTILES
        },
    )
    outputs = result.outputs.values()
    counts = Counts(len(outputs), sum(len(output.tokens) for output in outputs))
    # iterations and drafts, of programs that count them
    stats = [output.stats for output in outputs if output.stats is not None]
    passes = [output.passes for output in outputs if output.passes is not None]
    if len(stats) == len(outputs):
        drafts = [length for sentence in stats for length in sentence.drafted]
        counts.iterations = sum(sentence.iterations for sentence in stats)
        counts.drafted = sum(drafts)
        counts.accepted = sum(sum(sentence.accepted) for sentence in stats)
        counts.longest_draft = max(drafts, default=0)
    elif passes:
        counts.iterations = sum(passes)
    # whether it is what it promises, and what `greedy` says
    if result.differences is not None:
        counts.near_ties = sum(found.near_tie for found in result.differences)
        counts.differing = len(result.differences) - counts.near_ties
    if greedy is not None:
        counts.identical = sum(
            output.tokens == greedy.outputs[sentence].tokens
            for sentence, output in result.outputs.items()
        )
        counts.compared_with = greedy.mode.precision
    mode = result.mode
    return Run(
        mode.name, mode.implementation, mode.precision, result.batch_size, times, counts
    )


def by_edit_ratio(
    edit_ratios: Sequence[float], speed_ups: Sequence[float]
) -> list[list[float]]:
    """Mean edit ratio and median speed-up of about eight groups of sentences; those of one edit ratio share a group."""
    ratios = np.array(edit_ratios)
    faster = np.array(speed_ups)
    edges = np.unique(np.quantile(ratios, np.linspace(0, 1, _GROUPS + 1)))
    groups = np.searchsorted(edges[1:-1], ratios, side="right")
    members = [groups == group for group in np.unique(groups)]
    return [
        [round(float(ratios[rows].mean()), 4), round(median(faster[rows].tolist()), 4)]
        for rows in members
    ]


def counted(speed_ups: Sequence[float]) -> list[int]:
    """How many sentences are in each interval of `Times.speed_ups`."""
    intervals = (np.array(speed_ups) / SPEED_UP_STEP).astype(int)
    counts: list[int] = np.bincount(intervals).tolist()
    return counts
