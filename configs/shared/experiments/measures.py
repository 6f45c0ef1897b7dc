"""The numbers that a table can show, each a function of the place where its row was decoded and timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.results import Decoding, Measure, Place
from experiments.training_log import Validation, seconds_to_reach
from fairseq_aggdec.lab.bench.record import Counts, Run


@dataclass(frozen=True)
class Score:
    """A column of aggdec score, of the whole test set."""

    column: str

    def __call__(self, place: Place) -> float | None:
        """The score of the decoded output, in percent."""
        return place.results.score(place.set, place.label).get(self.column)


def _of_run(number: Callable[[Run], float | None]) -> Measure:
    """A number of the timed mode."""
    return lambda place: None if place.run is None else number(place.run)


def _counted(number: Callable[[Decoding | Counts], float | None]) -> Measure:
    """A number of the whole test set, or if it has no counters of the timed sentences."""

    def measure(place: Place) -> float | None:
        if place.decoding is not None:
            return number(place.decoding)
        return None if place.run is None else number(place.run.counts)

    return measure


def _of_training(number: Callable[[list[Validation]], float]) -> Measure:
    """A number of a drafter's training."""

    def measure(place: Place) -> float | None:
        training = place.results.training(place.training)
        return None if training is None else number(training)

    return measure


def _best(validations: list[Validation]) -> float:
    return max(validation.accepted for validation in validations)


def _mib(size: int | None) -> float | None:
    return None if size is None else size / 2**20


iterations = _counted(lambda found: found.mean_iterations)
"""mean iterations of a sentence"""
accepted_tokens = _counted(lambda found: found.mean_accepted_tokens)
"""mean committed tokens of an iteration, EOS counted"""
accepted_without_eos = _counted(
    lambda found: (
        (found.tokens - found.sentences) / found.iterations
        if found.iterations
        else None
    )
)
"""the same without EOS, as "Tok." of the papers: their published code stops counting before it"""
accepted_block = _counted(lambda found: found.mean_accepted_block)
"""mean tokens committed by a pass that verifies a block (k-hat of papers/004)"""
seconds = _of_run(lambda run: run.times.seconds)
"""seconds of all timed sentences"""
timed_bleu = _of_run(lambda run: run.counts.bleu)
"""sacrebleu's BLEU of the timed sentences"""
host_mib = _of_run(lambda run: _mib(run.counts.host_bytes))
"""peak resident memory of a process in MiB"""
device_mib = _of_run(lambda run: _mib(run.counts.device_bytes))
"""peak memory on the GPU in MiB"""
psnr = _of_run(lambda run: run.counts.psnr)
"""peak signal-to-noise ratio of the images of a mode, in dB"""
greedy_pixels = _of_run(lambda run: run.counts.same_pixels)
"""share of the pixels that are those of greedy decoding"""
updates = _of_training(lambda training: training[-1].update)
"""updates of a drafter's training"""
training_seconds = _of_training(lambda training: training[-1].seconds)
"""seconds of a drafter's training steps"""
best_accepted = _of_training(_best)
"""highest `accepted` of a drafter's validations"""


def speed_up(place: Place) -> float | None:
    """Seconds of the baseline over those of the mode."""
    slow, fast = place.baseline, place.run
    return None if slow is None or fast is None else fast.speed_up_over(slow)


def decoding_seconds(place: Place) -> float | None:
    """Seconds in which the whole test set was decoded, sentence by sentence."""
    return None if place.decoding is None else place.decoding.seconds


def decoding_speed_up(place: Place) -> float | None:
    """`decoding_seconds` of the label `over` divided by those of the label."""
    slow, fast = decoding_seconds(place.at(place.over)), decoding_seconds(place)
    return None if slow is None or fast is None else slow / fast


def module_ms(*modules: str, an_iteration: bool = False) -> Measure:
    """Milliseconds a sentence, or an iteration, in these modules; without names, in all."""

    def measure(place: Place) -> float | None:
        run = place.run
        spent = _module_seconds(place, modules)
        if run is None or spent is None:
            return None
        counts = run.counts
        parts = counts.iterations if an_iteration else counts.sentences
        return 1e3 * spent / parts if parts else None

    return measure


def module_percent(*modules: str) -> Measure:
    """Share of the time in these modules; without names, in all."""

    def measure(place: Place) -> float | None:
        spent, whole = _module_seconds(place, modules), _module_seconds(place, ())
        return None if spent is None or whole is None else 100 * spent / whole

    return measure


def _module_seconds(place: Place, modules: tuple[str, ...]) -> float | None:
    spent = place.run and place.run.times.modules
    return sum(spent.get(name, 0.0) for name in modules or spent) if spent else None


def bicubic_psnr(place: Place) -> float | None:
    """PSNR of the small images of a record after bicubic enlargement, in dB."""
    record = place.results.record(place.record)
    return None if record is None else record.bicubic_psnr


def common_accepted(place: Place) -> float | None:
    """Highest `accepted` that all trainings in the table reach."""
    found = [
        training
        for name in place.beside
        if (training := place.results.training(name)) is not None
    ]
    return min(map(_best, found)) if place.results.training(place.training) else None


def seconds_to_common_accepted(place: Place) -> float | None:
    """Seconds of training until `common_accepted`."""
    training, level = place.results.training(place.training), common_accepted(place)
    return (
        None if training is None or level is None else seconds_to_reach(training, level)
    )
