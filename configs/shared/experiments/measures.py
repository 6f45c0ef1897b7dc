"""The numbers that a table can show, by the names that the files of tables have for them.

Each is a function of the place where its row was decoded and timed. Any other name is a column of aggdec score.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from experiments.results import NotMeasuredError, Place, known
from experiments.training_log import Validation, seconds_to_reach

Measure = Callable[[Place], float | None]


def speed_up(place: Place) -> float:
    """Seconds of the baseline over those of the mode."""
    return place.run.speed_up_over(place.baseline)


def decoding_seconds(place: Place) -> float:
    """Seconds in which the whole test set was decoded, sentence by sentence."""
    return known(known(place.decoding).seconds)


def decoding_speed_up(place: Place) -> float:
    """`decoding_seconds` of the label `over` divided by those of the label."""
    slow = place.at(place.over)
    return decoding_seconds(slow) / decoding_seconds(place)


def accepted_without_eos(place: Place) -> float:
    """Mean committed tokens of an iteration as "Tok." of the papers: their published code stops counting before EOS."""
    counts = place.counts
    tokens = counts.tokens - counts.sentences
    return tokens / known(counts.iterations or None)


def module_seconds(place: Place) -> float:
    """Seconds in the place's modules; without names, in all."""
    spent = known(place.run.times.modules)
    return sum(spent.get(name, 0.0) for name in place.modules or spent)


def module_percent(place: Place) -> float:
    """Share of the time in the place's modules."""
    whole = place.at(modules=())
    return 100 * module_seconds(place) / module_seconds(whole)


def module_ms(place: Place) -> float:
    """Milliseconds of a sentence in the place's modules."""
    sentences = place.run.counts.sentences
    return 1e3 * module_seconds(place) / sentences


def module_ms_an_iteration(place: Place) -> float:
    """Milliseconds of an iteration in the place's modules."""
    iterations = known(place.run.counts.iterations or None)
    return 1e3 * module_seconds(place) / iterations


def output_tokens(place: Place) -> float:
    """Tokens of an output, its end counted."""
    counts = place.run.counts
    return counts.tokens / counts.sentences


def best_accepted(training: list[Validation]) -> float:
    """Highest `accepted` of a drafter's validations."""
    return max(validation.accepted for validation in training)


def common_accepted(place: Place) -> float:
    """Highest `accepted` that all trainings in the table reach."""
    known(place.training)
    trainings = filter(None, map(place.results.training, place.beside))
    return min(map(best_accepted, trainings))


def mib(size: int | None) -> float:
    """Bytes in MiB."""
    return known(size) / 2**20


def bicubic_psnr(place: Place) -> float | None:
    """PSNR of the small images of a record after bicubic enlargement, in dB."""
    record = known(place.results.record(place.record))
    return record.bicubic_psnr


def seconds_to_common_accepted(place: Place) -> float | None:
    """Seconds of training until `common_accepted`."""
    training = known(place.training)
    return seconds_to_reach(training, common_accepted(place))


MEASURES: dict[str, Measure] = {
    # of the whole test set, or if that has no counters of the timed sentences
    "iterations": attrgetter("counts.mean_iterations"),
    "accepted_tokens": attrgetter("counts.mean_accepted_tokens"),
    "accepted_without_eos": accepted_without_eos,
    "accepted_block": attrgetter("counts.mean_accepted_block"),
    "decoding_seconds": decoding_seconds,
    "decoding_speed_up": decoding_speed_up,
    # of the timed sentences
    "seconds": attrgetter("run.times.seconds"),
    "speed_up": speed_up,
    "timed_bleu": attrgetter("run.counts.bleu"),
    "host_mib": lambda place: mib(place.run.counts.host_bytes),
    "device_mib": lambda place: mib(place.run.counts.device_bytes),
    "module_percent": module_percent,
    "psnr": attrgetter("run.counts.psnr"),
    "greedy_pixels": attrgetter("run.counts.same_pixels"),
    "bicubic_psnr": bicubic_psnr,
    "as_greedy": attrgetter("run.counts.identical"),
    "output_tokens": output_tokens,
    "milliseconds": attrgetter("run.milliseconds"),
    "module_ms": module_ms,
    "module_ms_an_iteration": module_ms_an_iteration,
    # of a drafter's training
    "updates": lambda place: known(place.training)[-1].update,
    "training_seconds": lambda place: known(place.training)[-1].seconds,
    "best_accepted": lambda place: best_accepted(known(place.training)),
    "common_accepted": common_accepted,
    "seconds_to_common_accepted": seconds_to_common_accepted,
}


def measured(place: Place, name: str) -> float | None:
    """The number of this name, noted as used for the head of the page; None if it was not measured."""
    try:
        value = MEASURES[name](place) if name in MEASURES else place.score(name)
    except NotMeasuredError:
        return None
    if value is not None:
        place.results.used.append((place, name))
    return value
