"""The record of a benchmark as JSON: raw times and counters of each sentence, from which all tables are computed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking.results import ModeResult, Timed
from fairseq_aggdec.lab.lossless.differences import Difference
from fairseq_aggdec.structured_files import made_of, read_json

FORMAT = 2
"""version of the format; version 1 was a list of modes without counters"""


@dataclass
class Run(Timed):
    """One mode at one batch size. Unless said otherwise, lists have one entry for each sentence, by its number."""

    mode: str
    implementation: str
    """`fairseq`, `fairseq_aggdec` or a peer"""
    precision: str
    batch_size: int
    batches: list[list[int]]
    """numbers of the sentences in each batch, in the order of decoding"""
    latencies: list[list[float]]
    """seconds of each batch, one list for each round"""
    tokens: list[int]
    """length of the output, EOS counted"""
    outputs: list[str]
    """fingerprint of the output tokens"""
    iterations: list[int] | None = None
    """iterations of this plugin's modes; decoder passes of non-autoregressive models"""
    drafted: list[int] | None = None
    """draft tokens; None for other programs"""
    accepted: list[int] | None = None
    """accepted draft tokens; None for other programs"""
    longest_draft: int | None = None
    """tokens of the longest draft of all sentences and iterations, 0 without drafts; None for other programs"""
    bleu: float | None = None
    """BLEU of all sentences, 0 to 100"""
    modules: dict[str, float] | None = None
    """seconds by module, from one further round"""
    host_bytes: int | None = None
    """peak resident memory of a process that runs this mode alone"""
    device_bytes: int | None = None
    """peak memory that PyTorch allocated on the GPU in that process"""
    differences: list[dict[str, Any]] | None = None
    """of a lossless mode, each `Difference` from `greedy` (of `greedy`, from fairseq's beam of 1); None if the mode was
    not compared"""

    @property
    def sentence_latencies(self) -> list[float]:
        """Seconds of each sentence: the time of its whole batch, median of the rounds."""
        latencies = [0.0] * len(self.tokens)
        for batch, times in zip(self.batches, zip(*self.latencies, strict=True), strict=True):
            for number in batch:
                latencies[number] = median(times)
        return latencies

    def percentile(self, share: float) -> float:
        """A percentile of `sentence_latencies` in seconds, interpolated linearly.

        Args:
            share: 0 to 100.
        """
        return float(np.percentile(self.sentence_latencies, share))

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second, EOS counted."""
        return sum(self.tokens) / self.seconds

    @property
    def mean_iterations(self) -> float | None:
        """Mean iterations of a sentence."""
        return None if self.iterations is None else sum(self.iterations) / len(self.iterations)

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Mean committed tokens of an iteration, the verifier's own included (papers/000 Table 6, "Tok.").

        None for other programs.
        """
        return None if self.iterations is None or self.accepted is None else sum(self.tokens) / sum(self.iterations)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted draft tokens divided by all draft tokens; None if they were not counted."""
        return None if self.drafted is None else sum(self.accepted or ()) / max(1, sum(self.drafted))

    @property
    def mean_accepted_block(self) -> float | None:
        """Mean tokens committed by a pass that verifies a block (k-hat of papers/004).

        The first pass of each sentence verifies no block and is not counted: it commits one token and drafts the first
        block.
        """
        if not self.iterations:
            return None
        sentences = len(self.tokens)
        return (sum(self.tokens) - sentences) / max(1, sum(self.iterations) - sentences)

    @property
    def differing(self) -> list[Difference]:
        """The `differences` as objects; empty if the mode was not compared."""
        return [Difference(**fields) for fields in self.differences or []]

    def identical_to(self, other: "Run") -> int:
        """Number of sentences with the same output."""
        return sum(mine == theirs for mine, theirs in zip(self.outputs, other.outputs, strict=True))


@dataclass
class Record:
    """All that one call of `aggdec bench` measured."""

    title: str
    """the test set and the model"""
    command: str
    date: str
    commit: str | None
    machine: dict[str, Any]
    source_tokens: list[int]
    """length of each source, EOS counted"""
    edit_ratios: list[float]
    """of each sentence, the edit distance between the text that `iad` copies from and the output of `greedy` (of the
    first mode without it), divided by the length of that text"""
    runs: list[Run] = field(default_factory=list)
    format: int = FORMAT
    search: dict[str, Any] = field(default_factory=dict)
    """search options that differ from the defaults, under fairseq's names"""

    @property
    def batch_sizes(self) -> list[int]:
        """The batch sizes, in the order of the runs."""
        return list(dict.fromkeys(run.batch_size for run in self.runs))

    def at(self, batch_size: int) -> list[Run]:
        """The runs of one batch size."""
        return [run for run in self.runs if run.batch_size == batch_size]

    def save(self, path: Path) -> None:
        """Write JSON with one line for each field and each run."""
        content = asdict(self)
        runs = ",\n".join("  " + json.dumps(run) for run in content.pop("runs"))
        head = "".join(f' "{name}": {json.dumps(value)},\n' for name, value in content.items())
        with written_whole(path) as partial:
            partial.write_text(f'{{\n{head} "runs": [\n{runs}\n ]\n}}\n', encoding="utf-8")


def run_of(result: ModeResult, precision: str, differences: Sequence[Difference] | None = None) -> Run:
    """The part of a mode's result that is recorded; times are rounded to microseconds."""
    outputs = [result.outputs[number] for number in sorted(result.outputs)]
    stats = [output.stats for output in outputs if output.stats is not None]
    has_stats = len(stats) == len(outputs)
    passes = [output.passes for output in outputs if output.passes is not None]
    return Run(
        mode=result.mode.name,
        implementation=result.mode.implementation,
        precision=precision,
        batch_size=result.batch_size,
        batches=result.batches,
        latencies=[[round(seconds, 6) for seconds in latencies] for latencies in result.latencies],
        tokens=[len(output.tokens) for output in outputs],
        outputs=[fingerprint(output.tokens) for output in outputs],
        iterations=[sentence.iterations for sentence in stats] if has_stats else passes or None,
        drafted=[sum(sentence.drafted) for sentence in stats] if has_stats else None,
        accepted=[sum(sentence.accepted) for sentence in stats] if has_stats else None,
        longest_draft=max((max(sentence.drafted, default=0) for sentence in stats), default=0) if has_stats else None,
        differences=None if differences is None else [asdict(difference) for difference in differences],
    )


def fingerprint(tokens: Sequence[int]) -> str:
    """Ten hexadecimal digits of a hash of the tokens."""
    return sha256(" ".join(map(str, tokens)).encode()).hexdigest()[:10]


def load_record(path: Path) -> Record:
    """Read what `Record.save` wrote.

    Raises:
        AggdecError: the file is no record, or damaged.
        OSError: the file cannot be read.
    """
    content = read_json(path, "give a file that aggdec bench --json wrote")
    return record_of(content, str(path))


def record_of(content: Any, where: str) -> Record:
    """Turn parsed JSON into a record.

    Args:
        content: the JSON that `Record.save` wrote, parsed.
        where: how an error message names it.

    Raises:
        AggdecError: the content is no record, or damaged.
    """
    if not isinstance(content, dict) or "modes" in content or "runs" not in content:
        raise AggdecError(f"{where}: not written by this version of aggdec bench --json; measure again")
    if content.get("format") != FORMAT:
        raise AggdecError(f"{where}: has format {content.get('format')}, this version reads {FORMAT}; measure again")
    content = {"search": {}, **content}  # older records lack this field and two of a run
    if isinstance(content["runs"], list):
        lacking = {"differences": None, "longest_draft": None}
        content["runs"] = [{**lacking, **run} if isinstance(run, dict) else run for run in content["runs"]]
    record: Record = made_of(Record, content, where, "measure again")
    for number, run in enumerate(record.runs, start=1):
        _check(run, len(record.source_tokens), f"{where}, run {number} ({run.mode})")
    return record


def _check(run: Run, sentences: int, where: str) -> None:
    """Raise `AggdecError` if the lists do not have the lengths that they must have."""
    numbers = sorted(number for batch in run.batches for number in batch)
    counters: list[list[Any] | None] = [run.tokens, run.outputs, run.iterations, run.drafted, run.accepted]
    if (
        numbers != list(range(sentences))
        or not run.latencies
        or any(len(latencies) != len(run.batches) for latencies in run.latencies)
        or any(len(counter) != sentences for counter in counters if counter is not None)
        or min(run.rounds) <= 0
    ):
        raise AggdecError(f"{where}: times or counters do not fit {sentences} sentences; measure again")
