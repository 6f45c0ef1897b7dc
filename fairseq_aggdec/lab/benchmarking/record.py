"""What a benchmark leaves behind: raw times and counters of every sentence, as JSON. All else is arithmetic on it."""

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
"""1 was a list of modes without counters"""


@dataclass
class Run(Timed):
    """One mode at one batch size. Lists without other notice have one entry a sentence, by its number."""

    mode: str
    implementation: str
    """`fairseq`, `fairseq_aggdec` or a peer"""
    precision: str
    batch_size: int
    batches: list[list[int]]
    """the sentences' numbers, in the order of decoding"""
    latencies: list[list[float]]
    """seconds of each batch, one list a round"""
    tokens: list[int]
    """of the output, EOS counted"""
    outputs: list[str]
    """fingerprints of the output tokens"""
    iterations: list[int] | None = None
    """of this plugin's modes; of non-autoregressive peers the decoder's passes"""
    drafted: list[int] | None = None
    accepted: list[int] | None = None
    bleu: float | None = None
    modules: dict[str, float] | None = None
    """seconds by module of one further round"""
    host_bytes: int | None = None
    """peak resident memory of a process that runs this mode alone"""
    device_bytes: int | None = None
    """peak memory that PyTorch took on the device there"""
    differences: list[dict[str, Any]] | None = None
    """of lossless modes, each `Difference` from greedy (of greedy: from fairseq's beam of 1); None: not compared"""

    @property
    def sentence_latencies(self) -> list[float]:
        """Seconds that each sentence takes, the median of the rounds: as long as its whole batch."""
        latencies = [0.0] * len(self.tokens)
        for batch, times in zip(self.batches, zip(*self.latencies, strict=True), strict=True):
            for number in batch:
                latencies[number] = median(times)
        return latencies

    def percentile(self, share: float) -> float:
        """Of `sentence_latencies`, in seconds; between two of them linearly.

        Args:
            share: 0 to 100.
        """
        return float(np.percentile(self.sentence_latencies, share))

    @property
    def tokens_per_second(self) -> float:
        """Output tokens, EOS counted."""
        return sum(self.tokens) / self.seconds

    @property
    def mean_iterations(self) -> float | None:
        """Iterations a sentence."""
        return None if self.iterations is None else sum(self.iterations) / len(self.iterations)

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Committed tokens an iteration, the verifier's own included (papers/000 Table 6, "Tok."); not of peers."""
        return None if self.iterations is None or self.accepted is None else sum(self.tokens) / sum(self.iterations)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of drafted tokens; None where they were not counted."""
        return None if self.drafted is None else sum(self.accepted or ()) / max(1, sum(self.drafted))

    @property
    def mean_accepted_block(self) -> float | None:
        """Tokens that a pass which verifies a block commits (k-hat of papers/004).

        All passes do but the first of each sentence, which commits one token and proposes the first block.
        """
        if not self.iterations:
            return None
        sentences = len(self.tokens)
        return (sum(self.tokens) - sentences) / max(1, sum(self.iterations) - sentences)

    @property
    def differing(self) -> list[Difference]:
        """What `differences` holds."""
        return [Difference(**fields) for fields in self.differences or []]

    def identical_to(self, other: "Run") -> int:
        """Number of sentences with the same output."""
        return sum(mine == theirs for mine, theirs in zip(self.outputs, other.outputs, strict=True))


@dataclass
class Record:
    """One call of the benchmark."""

    title: str
    """what was decoded by what"""
    command: str
    date: str
    commit: str | None
    machine: dict[str, Any]
    source_tokens: list[int]
    """EOS counted"""
    edit_ratios: list[float]
    """edit distance of `greedy`'s output (the first mode's without) from what it may copy, over the latter's length"""
    runs: list[Run] = field(default_factory=list)
    format: int = FORMAT
    search: dict[str, Any] = field(default_factory=dict)
    """options of the search that were given, by fairseq's names of the fields"""

    @property
    def batch_sizes(self) -> list[int]:
        """In the order of the runs."""
        return list(dict.fromkeys(run.batch_size for run in self.runs))

    def at(self, batch_size: int) -> list[Run]:
        """The runs with a batch size."""
        return [run for run in self.runs if run.batch_size == batch_size]

    def save(self, path: Path) -> None:
        """Write JSON, one line an entry and a run."""
        content = asdict(self)
        runs = ",\n".join("  " + json.dumps(run) for run in content.pop("runs"))
        head = "".join(f' "{name}": {json.dumps(value)},\n' for name, value in content.items())
        with written_whole(path) as partial:
            partial.write_text(f'{{\n{head} "runs": [\n{runs}\n ]\n}}\n', encoding="utf-8")


def run_of(result: ModeResult, precision: str, differences: Sequence[Difference] | None = None) -> Run:
    """What to keep of a mode's result; times are rounded to microseconds."""
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
        differences=None if differences is None else [asdict(difference) for difference in differences],
    )


def fingerprint(tokens: Sequence[int]) -> str:
    """Equal for equal outputs."""
    return sha256(" ".join(map(str, tokens)).encode()).hexdigest()[:10]


def load_record(path: Path) -> Record:
    """Read what `Record.save` wrote.

    Raises:
        AggdecError: it is something else, or damaged.
        OSError: it cannot be read.
    """
    content = read_json(path, "give a file that aggdec bench --json wrote")
    return record_of(content, str(path))


def record_of(content: Any, where: str) -> Record:
    """The record that a JSON value is.

    Args:
        content: what `Record.save` wrote, read.
        where: what an error calls it.

    Raises:
        AggdecError: it is something else.
    """
    if not isinstance(content, dict) or "modes" in content or "runs" not in content:
        raise AggdecError(f"{where}: not written by this version of aggdec bench --json; measure again")
    if content.get("format") != FORMAT:
        raise AggdecError(f"{where}: has format {content.get('format')}, this version reads {FORMAT}; measure again")
    content = {"search": {}, **content}  # older ones were all searched with the defaults, and nothing was compared
    if isinstance(content["runs"], list):
        content["runs"] = [{"differences": None, **run} if isinstance(run, dict) else run for run in content["runs"]]
    record: Record = made_of(Record, content, where, "measure again")
    for number, run in enumerate(record.runs, start=1):
        _check(run, len(record.source_tokens), f"{where}, run {number} ({run.mode})")
    return record


def _check(run: Run, sentences: int, where: str) -> None:
    """Raises `AggdecError` where lists do not have the lengths that they must have."""
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
