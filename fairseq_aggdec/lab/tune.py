"""Runs `aggdec tune`: measures settings of GAD++ on a development set, and chooses two of them.

The authors (papers/000 §4.2.3) name them and give no rule. Here high-quality is the fastest setting that scores at
least `margin` above greedy decoding, high-efficiency the fastest that scores at most `loss` below it; what they choose
on the papers' numbers is in docs/metrics.md.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec import structured_files
from fairseq_aggdec.bulk.settings import difference
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256
from fairseq_aggdec.generation.modes import BEAM, GAD_PLUS, GREEDY
from fairseq_aggdec.lab.bench.machine import machine
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, read_subject
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.score.metrics import choose_metrics
from fairseq_aggdec.lab.score.reference_set import ReferenceSet

TOGETHER = 4
"""settings that are timed in the same rounds, beside greedy decoding, and then written to the file"""

Quality = Callable[[ModeResult], float]
"""gives the score of the outputs of all sentences"""


def tune(args: Any) -> None:
    """Measure the settings that the options ask for, and print them with the chosen ones.

    Raises:
        AggdecError: files do not belong together, or --output was measured under other conditions.
    """
    subject, test, dictionary = _read(args)
    metric = choose_metrics([args.metric], test)[args.metric]

    def quality(result: ModeResult) -> float:
        outputs = sorted(result.outputs.items())
        lines = [_words(dictionary, output.tokens) for _, output in outputs]
        return round(metric.score(test, lines)[-1], 4)

    sweep = Sweep.open(args.output, _conditions(args, subject, test))
    with Runs(subject) as runs:
        # first the block size, with one β and τ
        by_size = all_settings(args.block_sizes, args.betas[:1], args.tolerances[:1])
        sweep.measure(args.output, runs, quality, by_size)
        first = [point for point in sweep.points if point.setting in by_size]
        least = sweep.greedy.quality - args.loss
        best = fastest(first, least) or fastest(first, -math.inf)
        assert best is not None
        # then β and τ, with that size
        settings = all_settings([best.setting.block_size], args.betas, args.tolerances)
        sweep.measure(args.output, runs, quality, settings)
    print(table(sweep, metric.columns[-1], args.margin, args.loss))


@dataclass(frozen=True, order=True)
class Setting:
    """Hyperparameters of GAD++ (papers/000 §3.2.3)."""

    block_size: int
    """k: tokens of a draft"""
    beta: int
    """β: an accepted draft token is among the verifier's β best tokens"""
    tolerance: float
    """τ: its log-probability is at most τ (nats) below that of the best token"""

    @property
    def mode(self) -> ModeSpec:
        """The mode of the benchmark."""
        name = f"{GAD_PLUS}:{self.beta}:{self.tolerance:g}"
        return ModeSpec.parse(name).having(block_size=self.block_size)

    @property
    def cells(self) -> list[str]:
        """The values as they are printed."""
        if self == NO_DRAFTS:
            return [""] * 3
        return [str(self.block_size), str(self.beta), f"{self.tolerance:g}"]


NO_DRAFTS = Setting(0, 0, 0.0)
"""of searches without drafts"""


def all_settings(
    sizes: Sequence[int], betas: Sequence[int], tolerances: Sequence[float]
) -> list[Setting]:
    """All combinations of block size, β and τ."""
    return [Setting(*values) for values in product(sizes, betas, tolerances)]


@dataclass(frozen=True)
class Point:
    """A search that was measured."""

    search: str
    """`gad++`, or a search without drafts"""
    setting: Setting
    quality: float
    accepted: float
    """mean accepted tokens: committed tokens of an iteration, the verifier's choice after the draft included"""
    seconds: float
    """seconds for all sentences, median of the rounds"""
    greedy_seconds: float
    """seconds of greedy decoding in the same rounds"""

    @property
    def speed_up(self) -> float:
        """Speed-up over greedy decoding in the same rounds."""
        return self.greedy_seconds / self.seconds


@dataclass
class Sweep:
    """What a file of a sweep holds."""

    conditions: dict[str, Any]
    """settings that must stay the same for points to be comparable"""
    baselines: list[Point] = field(default_factory=list)
    """fairseq's beam search and greedy decoding; empty until they are measured"""
    points: list[Point] = field(default_factory=list)

    @property
    def greedy(self) -> Point:
        """Greedy decoding, beside beam search."""
        return self.baselines[1]

    @classmethod
    def open(cls, path: Path, conditions: dict[str, Any]) -> "Sweep":
        """Read a file that was measured under the same conditions, or begin a new sweep if there is none.

        Raises:
            AggdecError: the file was measured under other conditions, or is another kind of file.
            OSError: the file cannot be read.
        """
        if not path.exists():
            return cls(conditions)
        sweep = structured_files.read(
            path, cls, "not written by aggdec tune; name another file"
        )
        if other := difference(conditions, sweep.conditions, "now", "there"):
            raise AggdecError(
                f"{path}: was measured under other conditions ({other}); numbers would not compare: name another file"
            )
        return sweep

    def measure(
        self, path: Path, runs: Runs, quality: Quality, settings: Sequence[Setting]
    ) -> None:
        """Measure the baselines and the settings that the sweep lacks, and write the file after each few of them.

        `runs` are of a subject with a drafter.

        Raises:
            AggdecError: a block size is larger than the drafter's, or a lossless setting (β = 1 or τ = 0) has another
                output than greedy decoding.
        """
        if not self.baselines:
            greedy, beam = self._timed(runs, quality, [NO_DRAFTS])
            self.baselines = [beam, greedy]
        known = {point.setting for point in self.points}
        missing = [
            setting for setting in dict.fromkeys(settings) if setting not in known
        ]
        for first in range(0, len(missing), TOGETHER):
            chosen = missing[first : first + TOGETHER]
            self.points += self._timed(runs, quality, chosen)[1:]
            structured_files.write(path, self)

    def _timed(
        self, runs: Runs, quality: Quality, settings: Sequence[Setting]
    ) -> list[Point]:
        """Greedy decoding and these settings, timed in the same rounds; `NO_DRAFTS`: fairseq's beam search."""
        given = self.conditions
        beam = ModeSpec.parse(f"{BEAM}{given['beam']}")
        modes = [ModeSpec.parse(GREEDY)]
        modes += (beam if each == NO_DRAFTS else each.mode for each in settings)
        runners = [
            runs.runner(
                replace(mode, precision=given["precision"]), given["batch_size"]
            )
            for mode in modes
        ]
        results = runs.compare_lossless(runners, given["repeats"])
        points = []
        for setting, result in zip([NO_DRAFTS, *settings], results, strict=True):
            mode = result.mode
            accepted = run_of(result).counts.mean_accepted_tokens or 1.0
            points.append(
                Point(
                    f"beam {mode.beam}" if mode.row.is_fairseqs else mode.decoding,
                    setting,
                    quality(result),
                    round(accepted, 4),
                    round(result.seconds, 6),
                    round(results[0].seconds, 6),
                )
            )
        return points


def fastest(points: Iterable[Point], least_quality: float) -> Point | None:
    """The fastest point with at least this quality; None if there is none.

    Of equally fast points, the one with the higher quality wins, then the smaller setting.
    """
    good = [point for point in points if point.quality >= least_quality]
    return min(
        good,
        key=lambda point: (-point.speed_up, -point.quality, point.setting),
        default=None,
    )


def table(sweep: Sweep, quality: str, margin: float, loss: float) -> str:
    """Mean accepted tokens, quality and speed over beam search of each setting (papers/000 Tables 6 and 7).

    `quality`: the metric's name; `margin`, `loss`: of the rule that chooses settings.
    """
    beam, greedy = sweep.baselines
    chosen = {
        "high-quality": fastest(sweep.points, greedy.quality + margin),
        "high-efficiency": fastest(sweep.points, greedy.quality - loss),
    }
    in_order = sorted(sweep.points, key=lambda point: point.setting)
    rows = [
        [
            point.search,
            *point.setting.cells,
            f"{point.accepted:.2f}",
            f"{point.quality:.2f}",
            f"{point.speed_up / beam.speed_up:.2f}x",
            ", ".join(name for name, best in chosen.items() if best == point),
        ]
        for point in [beam, greedy, *in_order]
    ]
    lines = [text_table(["", "k", "β", "τ", "Tok.", quality, "speed", "chosen"], rows)]
    lines += [
        f"{name}: none of these settings"
        for name, best in chosen.items()
        if best is None
    ]
    return "\n".join(lines)


def _read(args: Any) -> tuple[Subject, ReferenceSet, Any]:
    """The sentences to decode, their references, and the target dictionary."""
    subject, task = read_subject(args)
    dataset = task.dataset(args.gen_subset)
    if dataset.tgt is None:
        raise AggdecError(
            f"{args.gen_subset} of {args.data} has no target side to compare with"
        )
    sources = [
        _words(task.source_dictionary, sentence) for sentence in subject.sentences
    ]
    references = [
        _words(task.target_dictionary, dataset.tgt[index].tolist())
        for index in range(len(sources))
    ]
    return subject, ReferenceSet(sources, [references]), task.target_dictionary


def _words(dictionary: Any, tokens: Sequence[int]) -> list[str]:
    """The words of token ids, with subwords joined and without EOS."""
    return str(
        dictionary.string(torch.tensor(tokens), bpe_symbol="subword_nmt")
    ).split()


def _conditions(args: Any, subject: Subject, test: ReferenceSet) -> dict[str, Any]:
    """The conditions that must stay the same for measurements to be comparable; of files, their contents' SHA-256."""
    files = [*args.path.split(":"), args.drafter_path]
    return {
        "models": {path: file_sha256(Path(path)) for path in files},
        "data": f"{args.gen_subset} of {args.data}",
        "sentences": len(subject.sentences),
        "texts": sha256(repr(test).encode()).hexdigest(),
        "metric": args.metric,
        "beam": args.beam,
        "batch_size": args.batch_size,
        "repeats": args.repeats,
        "device": subject.device,
        "precision": args.precision or "fp32",
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }
