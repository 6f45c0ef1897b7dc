"""The numbers that a table can show, each a function of the place where its row was decoded and timed."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq_aggdec.lab.evaluation.training_log import Validation, seconds_to_reach
from fairseq_aggdec.lab.reporting.results import Measure, Place


@dataclass(frozen=True)
class Score:
    """A column of aggdec score, of the whole test set."""

    column: str

    def __call__(self, place: Place) -> float | None:
        """The score of the decoded output, in percent."""
        return place.results.score(place.set, place.label).get(self.column)


def iterations(place: Place) -> float | None:
    """Mean iterations of a sentence: of the whole test set, or if it has no counters of the timed sentences."""
    found = place.decoding or place.run
    return None if found is None else found.mean_iterations


def accepted_tokens(place: Place) -> float | None:
    """Mean committed tokens of an iteration, counted as `iterations`."""
    found = place.decoding or place.run
    return None if found is None else found.mean_accepted_tokens


def accepted_block(place: Place) -> float | None:
    """Mean tokens committed by a pass that verifies a block (k-hat of papers/004)."""
    return None if place.run is None else place.run.mean_accepted_block


def seconds(place: Place) -> float | None:
    """Seconds of all timed sentences."""
    return None if place.run is None else place.run.seconds


def speed_up(place: Place) -> float | None:
    """Seconds of the baseline over those of the mode."""
    slow, fast = place.baseline, place.run
    return None if slow is None or fast is None else slow.seconds / fast.seconds


def timed_bleu(place: Place) -> float | None:
    """sacrebleu's BLEU of the timed sentences."""
    return None if place.run is None else place.run.bleu


def timed_bleu_of_all(place: Place) -> float | None:
    """`timed_bleu` if the whole test set was timed; only then can it be compared with other scores."""
    run, test = place.run, place.results.test_set(place.set)
    return None if run is None or test is None or run.sentences != test[1] else run.bleu


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
        if run is None or spent is None or (an_iteration and not run.iterations):
            return None
        return 1e3 * spent / ((run.iterations or 0) if an_iteration else run.sentences)

    return measure


def module_percent(*modules: str) -> Measure:
    """Share of the time in these modules; without names, in all."""

    def measure(place: Place) -> float | None:
        spent, whole = _module_seconds(place, modules), _module_seconds(place, ())
        return None if spent is None or whole is None else 100 * spent / whole

    return measure


def _module_seconds(place: Place, modules: tuple[str, ...]) -> float | None:
    run = place.run
    return sum(run.modules.get(name, 0.0) for name in modules or run.modules) if run and run.modules else None


def host_mib(place: Place) -> float | None:
    """Peak resident memory of a process in MiB."""
    return None if place.run is None or place.run.host_bytes is None else place.run.host_bytes / 2**20


def device_mib(place: Place) -> float | None:
    """Peak memory on the GPU in MiB."""
    return None if place.run is None or place.run.device_bytes is None else place.run.device_bytes / 2**20


def psnr(place: Place) -> float | None:
    """Peak signal-to-noise ratio of the images of a mode, in dB."""
    return None if place.run is None else place.run.psnr


def bicubic_psnr(place: Place) -> float | None:
    """PSNR of the small images of a record after bicubic enlargement, in dB."""
    record = place.results.record(place.record)
    return None if record is None else record.bicubic_psnr


def greedy_pixels(place: Place) -> float | None:
    """Share of the pixels that are those of greedy decoding."""
    return None if place.run is None else place.run.same_pixels


def updates(place: Place) -> float | None:
    """Updates of a drafter's training."""
    training = place.results.training(place.training)
    return None if training is None else training[-1].update


def training_seconds(place: Place) -> float | None:
    """Seconds of a drafter's training steps."""
    training = place.results.training(place.training)
    return None if training is None else training[-1].seconds


def best_accepted(place: Place) -> float | None:
    """Highest `accepted` of a drafter's validations."""
    training = place.results.training(place.training)
    return None if training is None else _best(training)


def common_accepted(place: Place) -> float | None:
    """Highest `accepted` that all trainings in the table reach."""
    found = [training for name in place.beside if (training := place.results.training(name)) is not None]
    return min(map(_best, found)) if place.results.training(place.training) else None


def seconds_to_common_accepted(place: Place) -> float | None:
    """Seconds of training until `common_accepted`."""
    training, level = place.results.training(place.training), common_accepted(place)
    return None if training is None or level is None else seconds_to_reach(training, level)


def _best(validations: list[Validation]) -> float:
    return max(validation.accepted for validation in validations)
