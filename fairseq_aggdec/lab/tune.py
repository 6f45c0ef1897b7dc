"""Runs `aggdec tune`: measures settings of GAD++ on a development set, and chooses two of them.

The authors (papers/000 §4.2.3) name them and give no rule. Here high-quality is the fastest setting that scores at
least `margin` above greedy decoding, high-efficiency the fastest that scores at most `loss` below it; what they choose
on the papers' numbers is in docs/metrics.md.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
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
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, read_subject
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.score.metrics import choose_metrics
from fairseq_aggdec.lab.score.reference_set import ReferenceSet

TOGETHER = 4
"""number of settings that are timed in the same rounds, beside greedy decoding, and then written to the file"""

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
        lines = [
            _words(dictionary, output.tokens)
            for _, output in sorted(result.outputs.items())
        ]
        return round(metric.score(test, lines)[-1], 4)

    sweep = Sweep.open(args.output, _conditions(args, subject, test))
    with Runs(subject) as runs:
        by_size = all_settings(args.block_sizes, args.betas[:1], args.tolerances[:1])
        sweep.measure(args.output, runs, quality, by_size)
        assert sweep.baselines is not None
        first = [point for point in sweep.points if point.setting in by_size]
        best = fastest(first, sweep.baselines.greedy_quality - args.loss) or fastest(
            first, -math.inf
        )
        assert best is not None
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
    def mode(self) -> Mode:
        """The mode of the benchmark."""
        return Mode.parse(f"{GAD_PLUS}:{self.beta}:{self.tolerance:g}").having(
            block_size=self.block_size
        )


def all_settings(
    sizes: Sequence[int], betas: Sequence[int], tolerances: Sequence[float]
) -> list[Setting]:
    """All combinations of block size, β and τ."""
    return [Setting(*values) for values in product(sizes, betas, tolerances)]


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
    def speed_up(self) -> float:
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
        beam, batch_size, repeats = (
            self.conditions[name] for name in ("beam", "batch_size", "repeats")
        )
        greedy = runs.runner(Mode.parse(GREEDY), batch_size)
        if self.baselines is None:
            searching = runs.runner(Mode.parse(f"{BEAM}{beam}"), batch_size)
            by_beam, plain = runs.compare_lossless([searching, greedy], repeats)
            seconds = round(by_beam.seconds, 6), round(plain.seconds, 6)
            self.baselines = Baselines(
                beam, quality(by_beam), seconds[0], quality(plain), seconds[1]
            )
        known = {point.setting for point in self.points}
        missing = [
            setting for setting in dict.fromkeys(settings) if setting not in known
        ]
        for first in range(0, len(missing), TOGETHER):
            chosen = missing[first : first + TOGETHER]
            drafted = [runs.runner(setting.mode, batch_size) for setting in chosen]
            plain, *results = runs.compare_lossless([greedy, *drafted], repeats)
            for setting, result in zip(chosen, results, strict=True):
                accepted = run_of(result, "").mean_accepted_tokens or 0.0
                seconds = round(result.seconds, 6), round(plain.seconds, 6)
                self.points.append(
                    Point(setting, quality(result), round(accepted, 4), *seconds)
                )
            structured_files.write(path, self)


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
    baselines = sweep.baselines
    assert baselines is not None
    greedy_speed = baselines.beam_seconds / baselines.greedy_seconds
    rows = [
        [
            f"beam {baselines.beam}",
            "",
            "",
            "",
            "1.00",
            f"{baselines.beam_quality:.2f}",
            "1.00x",
            "",
        ],
        [
            GREEDY,
            "",
            "",
            "",
            "1.00",
            f"{baselines.greedy_quality:.2f}",
            f"{greedy_speed:.2f}x",
            "",
        ],
    ]
    chosen = {
        "high-quality": fastest(sweep.points, baselines.greedy_quality + margin),
        "high-efficiency": fastest(sweep.points, baselines.greedy_quality - loss),
    }
    for point in sorted(sweep.points, key=lambda point: point.setting):
        setting = point.setting
        cells = [
            str(setting.block_size),
            str(setting.beta),
            f"{setting.tolerance:g}",
            f"{point.accepted:.2f}",
        ]
        called = ", ".join(name for name, best in chosen.items() if best == point)
        rows.append(
            [
                GAD_PLUS,
                *cells,
                f"{point.quality:.2f}",
                f"{point.speed_up * greedy_speed:.2f}x",
                called,
            ]
        )
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
    numbers = range(len(subject.sentences))
    sources = [
        _words(task.source_dictionary, sentence) for sentence in subject.sentences
    ]
    references = [
        _words(task.target_dictionary, dataset.tgt[number].tolist())
        for number in numbers
    ]
    return subject, ReferenceSet(sources, [references]), task.target_dictionary


def _words(dictionary: Any, tokens: Sequence[int]) -> list[str]:
    """The words of token numbers, with subwords joined and without EOS."""
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
        "precision": subject.precision,
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }
