"""All measures that a table can show, by name: functions that look up a number in an experiment's results."""

from __future__ import annotations

from collections.abc import Callable

from fairseq_aggdec.lab.benchmarking.image_record import Quality
from fairseq_aggdec.lab.benchmarking.record import Run
from fairseq_aggdec.lab.evaluation.training_log import Validation, seconds_to_reach
from fairseq_aggdec.lab.reporting.counterparts import Source
from fairseq_aggdec.lab.reporting.results import Decoding, Results

Number = Callable[[Results, Source], float | None]


def value(results: Results, source: Source) -> float | None:
    """The number that a source names; None if it was not measured."""
    if source.measure in MEASURES:
        return MEASURES[source.measure](results, source)
    return _score(results, source)


def run_of(results: Results, source: Source) -> Run | None:
    """The run of the mode that a source names; None if it was not timed."""
    return _run(results, source.record, source.mode, source.batch_size)


def _score(results: Results, source: Source) -> float | None:
    """The score in a column of aggdec score, for the source's `set` and `label`."""
    for table in results.scores:
        if table["subset"] == source.set:
            for row in table["rows"]:
                if row["name"] == source.label and source.measure in row["scores"]:
                    return float(row["scores"][source.measure])
    return None


def _run(results: Results, record: str, mode: str, batch_size: int) -> Run | None:
    """A run of a record. In the mode's name, `-` may stand for `:`, as in names of folders."""
    if record not in results.records:
        return None
    runs = results.records[record].at(batch_size)
    return next((run for run in runs if _with_hyphens(run.mode) == _with_hyphens(mode)), None)


def _with_hyphens(mode: str) -> str:
    return mode.replace(":", "-")


def _decoding(results: Results, source: Source, label: str | None = None) -> Decoding | None:
    for decoding in results.decodings:
        if (decoding.subset, decoding.label) == (source.set, label or source.label):
            return decoding
    return None


def _counted(ratio: Callable[[Decoding | Run], float | None]) -> Number:
    """A measure of counters, from the whole decoded test set or, if it has none, from the timed sentences."""

    def measure(results: Results, source: Source) -> float | None:
        found = _decoding(results, source) or run_of(results, source)
        return None if found is None else ratio(found)

    return measure


def _timed(number: Callable[[Run], float | None]) -> Number:
    """A measure of a run."""

    def measure(results: Results, source: Source) -> float | None:
        found = run_of(results, source)
        return None if found is None else number(found)

    return measure


def _speed_up(results: Results, source: Source) -> float | None:
    slow = _run(results, source.over_record, source.over, source.batch_size)
    fast = run_of(results, source)
    return None if slow is None or fast is None else slow.seconds / fast.seconds


def _timed_bleu_of_all(results: Results, source: Source) -> float | None:
    """BLEU of a run if the whole test set was timed; only then can it be compared with other scores."""
    run = run_of(results, source)
    sizes = [table["sentences"] for table in results.scores if table["subset"] == source.set]
    return None if run is None or len(run.tokens) not in sizes else run.bleu


def _decoding_seconds(results: Results, source: Source) -> float | None:
    found = _decoding(results, source)
    return None if found is None else found.seconds


def _decoding_speed_up(results: Results, source: Source) -> float | None:
    slow, fast = _decoding(results, source, source.over), _decoding(results, source)
    if slow is None or fast is None or slow.seconds is None or fast.seconds is None:
        return None
    return slow.seconds / fast.seconds


def _modules(ratio: Callable[[float, Run], float | None]) -> Number:
    """A measure of the seconds of `source.modules`, or of all modules."""

    def measure(results: Results, source: Source) -> float | None:
        run = run_of(results, source)
        if run is None or not run.modules:
            return None
        return ratio(sum(run.modules.get(name, 0.0) for name in source.modules or run.modules), run)

    return measure


def _mebibytes(count: int | None) -> float | None:
    return None if count is None else count / 2**20


def _of_images(number: Callable[[Quality], float | None]) -> Number:
    """A measure of the images of a mode, or of `bicubic` enlargement."""

    def measure(results: Results, source: Source) -> float | None:
        found = results.images.get(source.record, {}).get(source.mode)
        return None if found is None else number(found)

    return measure


def _trained(number: Callable[[list[Validation], float], float | None]) -> Number:
    """A measure of a training and of a level of `accepted`: the highest that all trainings of the table reach."""

    def measure(results: Results, source: Source) -> float | None:
        if source.training not in results.trainings:
            return None
        beside = [results.trainings[name] for name in source.beside if name in results.trainings]
        return number(results.trainings[source.training], min(map(_best, beside)))

    return measure


def _best(validations: list[Validation]) -> float:
    return max(validation.accepted for validation in validations)


MEASURES: dict[str, Number] = {
    "iterations": _counted(lambda found: found.mean_iterations),
    "accepted tokens": _counted(lambda found: found.mean_accepted_tokens),
    "acceptance %": _counted(lambda found: None if found.acceptance_rate is None else 100 * found.acceptance_rate),
    "accepted block": _timed(lambda run: run.mean_accepted_block),
    "seconds": _timed(lambda run: run.seconds),
    "milliseconds": _timed(lambda run: 1e3 * run.seconds / len(run.tokens)),
    "timed BLEU": _timed(lambda run: run.bleu),
    "timed BLEU of all": _timed_bleu_of_all,
    "speed-up": _speed_up,
    "decoding seconds": _decoding_seconds,
    "decoding speed-up": _decoding_speed_up,
    "module ms": _modules(lambda seconds, run: 1e3 * seconds / len(run.tokens)),
    "module ms an iteration": _modules(
        lambda seconds, run: 1e3 * seconds / sum(run.iterations) if run.iterations else None
    ),
    "module %": _modules(lambda seconds, run: 100 * seconds / sum((run.modules or {}).values())),
    "host MiB": _timed(lambda run: _mebibytes(run.host_bytes)),
    "device MiB": _timed(lambda run: _mebibytes(run.device_bytes)),
    "PSNR": _of_images(lambda quality: quality.psnr),
    "greedy's pixels": _of_images(lambda quality: quality.identical_share if quality.identical else None),
    "updates": _trained(lambda training, level: training[-1].update),
    "training seconds": _trained(lambda training, level: training[-1].seconds),
    "best accepted": _trained(lambda training, level: _best(training)),
    "common accepted": _trained(lambda training, level: level),
    "seconds to common accepted": _trained(seconds_to_reach),
}
"""all measures by name, except the columns of aggdec score"""
