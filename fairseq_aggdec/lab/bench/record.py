"""The record of a benchmark as JSON: medians, spread and counts of each mode, from which all tables are made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import BEAM, GREEDY
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.verify.differences import Difference

PERCENTILES = (50, 95, 99)
_SHARES = tuple(map(str, PERCENTILES))
BASELINES = (f"{BEAM}5", f"{BEAM}1", GREEDY)
"""modes over which others are faster, the widest beam first"""
SPEED_UP_STEP = 0.5
_GROUPS = 8  # of sentences, in `by_edit_ratio`


@dataclass
class Run:
    """One mode at one batch size. Counts are sums over all sentences."""

    mode: str
    implementation: str
    """`fairseq`, `fairseq_aggdec` or a peer"""
    precision: str
    batch_size: int
    sentences: int
    rounds: int
    """how often the sentences were decoded"""
    seconds: float
    """of a round, the median"""
    fastest: float
    """seconds of the fastest round"""
    slowest: float
    """seconds of the slowest round"""
    percentiles: dict[str, float]
    """seconds of a sentence (of its whole batch, median of the rounds), by `PERCENTILES`"""
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
    speed_up_by_edit_ratio: list[list[float]] | None = None
    """speed-up over `greedy` of about eight groups of sentences: mean edit ratio, median speed-up"""
    speed_ups: list[int] | None = None
    """at batch size 1, number of sentences with a speed-up from 0 to 0.5, from 0.5 to 1, ... over the first of
    `BASELINES` that was timed"""
    bleu: float | None = None
    """BLEU of all sentences, 0 to 100"""
    psnr: float | None = None
    """peak signal-to-noise ratio of images in dB, mean over images"""
    same_pixels: float | None = None
    """share of the images' pixels that are the same as with `greedy`"""
    modules: dict[str, float] | None = None
    """seconds by module, from one further round"""
    host_bytes: int | None = None
    """peak resident memory of a process that runs this mode alone"""
    device_bytes: int | None = None
    """peak memory that PyTorch allocated on the GPU in that process"""

    def __post_init__(self) -> None:
        in_order = 0 < self.fastest <= self.seconds <= self.slowest and set(
            self.percentiles
        ) == set(_SHARES)
        if (
            min(self.sentences, self.rounds) < 1
            or not in_order
            or not sum((self.modules or {"": 1.0}).values()) > 0
        ):
            raise AggdecError(f"{self.mode}: times or counters that no measurement has")

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second, EOS counted."""
        return self.tokens / self.seconds

    @property
    def mean_iterations(self) -> float | None:
        """Mean iterations of a sentence."""
        return None if self.iterations is None else self.iterations / self.sentences

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Mean committed tokens of an iteration, the verifier's own and EOS included.

        None for other programs.
        """
        return (
            None
            if not self.iterations or self.accepted is None
            else self.tokens / self.iterations
        )

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
class Record:
    """All that one call of `aggdec bench` measured."""

    title: str
    """the test set and the model"""
    command: str
    date: str
    commit: str | None
    machine: dict[str, Any]
    sentences: int
    source_tokens: int
    """tokens of all sources, EOS counted"""
    edit_ratio: float | None
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
        """Write JSON with one line for each field and each run."""
        structured_files.write(path, self)


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


def run_of(
    result: ModeResult,
    precision: str,
    differences: Sequence[Difference] | None = None,
    greedy: ModeResult | None = None,
    greedy_precision: str | None = None,
) -> Run:
    """The part of a mode's result that is recorded; times are rounded to microseconds.

    Args:
        result, precision: of the mode.
        differences: of a lossless mode, from its reference; None if it was not compared.
        greedy: the result of `greedy`, if it was decoded, in the same precision if it was decoded in that.
        greedy_precision: its precision.
    """
    outputs = [result.outputs[number] for number in sorted(result.outputs)]
    stats = [output.stats for output in outputs if output.stats is not None]
    passes = [output.passes for output in outputs if output.passes is not None]
    drafts = [length for sentence in stats for length in sentence.drafted]
    waits = result.sentence_latencies
    run = Run(
        mode=result.mode.name,
        implementation=result.mode.implementation,
        precision=precision,
        batch_size=result.batch_size,
        sentences=len(outputs),
        rounds=len(result.rounds),
        seconds=round(result.seconds, 6),
        fastest=round(min(result.rounds), 6),
        slowest=round(max(result.rounds), 6),
        percentiles={
            str(share): round(float(np.percentile(waits, share)), 8)
            for share in PERCENTILES
        },
        tokens=sum(len(output.tokens) for output in outputs),
    )
    if len(stats) == len(outputs):
        run.iterations = sum(sentence.iterations for sentence in stats)
        run.drafted, run.accepted = (
            sum(drafts),
            sum(sum(sentence.accepted) for sentence in stats),
        )
        run.longest_draft = max(drafts, default=0)
    elif passes:
        run.iterations = sum(passes)
    if differences is not None:
        run.near_ties = sum(difference.near_tie for difference in differences)
        run.differing = len(differences) - run.near_ties
    if greedy is not None:
        run.identical = sum(
            output.tokens == greedy.outputs[n].tokens
            for n, output in result.outputs.items()
        )
        run.compared_with = greedy_precision
    return run


def by_edit_ratio(
    edit_ratios: Sequence[float], speed_ups: Sequence[float]
) -> list[list[float]]:
    """Mean edit ratio and median speed-up of about eight groups of sentences; those of one edit ratio share a group."""
    ratios, faster = np.array(edit_ratios), np.array(speed_ups)
    edges = np.unique(np.quantile(ratios, np.linspace(0, 1, _GROUPS + 1)))
    group = np.searchsorted(edges[1:-1], ratios, side="right")
    chosen = [group == number for number in np.unique(group)]
    return [
        [round(float(ratios[rows].mean()), 4), round(median(faster[rows].tolist()), 4)]
        for rows in chosen
    ]


def counted(speed_ups: Sequence[float]) -> list[int]:
    """The number of sentences in each interval of `Run.speed_ups`."""
    counts: list[int] = np.bincount(
        (np.array(speed_ups) / SPEED_UP_STEP).astype(int)
    ).tolist()
    return counts
