"""Measures settings of GAD++ on a development set, in one process, timed as in the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fairseq_aggdec import structured_files
from fairseq_aggdec.lab.bench.alarm import compare_with_greedy, print_differences, refuse_differences
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import ModeResult, Runner, compare
from fairseq_aggdec.lab.bench.subject import Runners
from fairseq_aggdec.lab.tune.points import Baselines, Point, Setting, Sweep

TOGETHER = 4
"""number of settings that are timed in the same rounds, beside greedy decoding, and then written to the file"""

Quality = Callable[[Mapping[int, Sequence[int]]], float]
"""gives the score of outputs: target token numbers, EOS included, by sentence number"""


class Measurement:
    """Times and scores settings on the sentences of a benchmark's subject."""

    def __init__(self, runners: Runners, quality: Quality, batch_size: int = 1, repeats: int = 3) -> None:
        """
        Args:
            runners: runners of a subject with a drafter.
            quality: scores outputs.
            batch_size: sentences in a batch.
            repeats: number of rounds.
        """
        self._runners = runners
        self._quality = quality
        self._batch_size = batch_size
        self._repeats = repeats
        self._greedy: Runner | None = None

    def baselines(self, beam: int) -> Baselines:
        """Measure fairseq's beam search and this plugin's greedy decoding in the same rounds."""
        searching = self._runners.make(Mode.parse(f"beam{beam}"), self._batch_size)
        by_beam, greedy = self._compare([searching, self._make_greedy()])
        return Baselines(
            beam, self._score(by_beam), round(by_beam.seconds, 6), self._score(greedy), round(greedy.seconds, 6)
        )

    def points(self, settings: Sequence[Setting]) -> list[Point]:
        """Measure settings in the same rounds.

        Raises:
            AggdecError: a block size is larger than the drafter's, or a lossless setting (β = 1 or τ = 0) has another
                output than greedy decoding.
        """
        greedy, *results = self._compare([self._make_greedy(), *map(self._make, settings)])
        points = []
        for setting, result in zip(settings, results, strict=True):
            accepted = run_of(result, "").mean_accepted_tokens
            assert accepted is not None  # all modes of this plugin count them
            points.append(
                Point(
                    setting,
                    quality=self._score(result),
                    accepted=round(accepted, 4),
                    seconds=round(result.seconds, 6),
                    greedy_seconds=round(greedy.seconds, 6),
                )
            )
        return points

    def _compare(self, runners: Sequence[Runner]) -> list[ModeResult]:
        results = compare(runners, self._repeats)
        different = compare_with_greedy(runners, results, self._runners.precision, self._runners.subject.block_ngrams)
        print_differences(different, self._runners.any_task().target_dictionary.symbols)
        refuse_differences(different)
        return results

    def _make(self, setting: Setting) -> Runner:
        mode = Mode.parse(f"gad++:{setting.beta}:{setting.tolerance:g}")
        mode = replace(mode, options={**mode.options, "block_size": setting.block_size})
        return self._runners.make(mode, self._batch_size)

    def _make_greedy(self) -> Runner:
        if self._greedy is None:
            self._greedy = self._runners.make(Mode.parse("greedy"), self._batch_size)
        return self._greedy

    def _score(self, result: ModeResult) -> float:
        return round(self._quality({number: output.tokens for number, output in result.outputs.items()}), 4)


def run(sweep: Sweep, path: Path, measurement: Measurement, settings: Sequence[Setting], beam: int = 5) -> None:
    """Measure the baselines and settings that a sweep lacks, and write the file after each few of them."""
    if sweep.baselines is None:
        sweep.baselines = measurement.baselines(beam)
    known = {point.setting for point in sweep.points}
    missing = [setting for setting in dict.fromkeys(settings) if setting not in known]
    for first in range(0, len(missing), TOGETHER):
        sweep.points += measurement.points(missing[first : first + TOGETHER])
        structured_files.write(path, sweep)
