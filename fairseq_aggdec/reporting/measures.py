"""Numbers of an experiment's results, by their names."""

from __future__ import annotations

from collections.abc import Callable

from fairseq_aggdec.reporting.counterparts import Source
from fairseq_aggdec.reporting.results import Decoding, Measured, Results


def value(results: Results, source: Source) -> float | None:
    """The number that a source names; None where it was not measured."""
    if source.measure in MEASURES:
        return MEASURES[source.measure](results, source)
    return _score(results, source)


def _score(results: Results, source: Source) -> float | None:
    """A column of aggdec score, of `set` and `label`."""
    for table in results.scores:
        if table["subset"] == source.set:
            for row in table["rows"]:
                if row["name"] == source.label and source.measure in row["scores"]:
                    return float(row["scores"][source.measure])
    return None


def _run(results: Results, record: str, mode: str, batch_size: int) -> Measured | None:
    """A mode of a measurement. The parts of its name may be joined by `-`, as in the names of folders."""
    wanted = _plain(mode)
    for measurement in results.measurements:
        if measurement.name == record:
            for run in measurement.runs:
                if run.batch_size == batch_size and _plain(run.mode) == wanted:
                    return run
    return None


def _plain(mode: str) -> str:
    return mode.replace(":", "-")


def _decoding(results: Results, source: Source, label: str | None = None) -> Decoding | None:
    for decoding in results.decodings:
        if (decoding.subset, decoding.label) == (source.set, label or source.label):
            return decoding
    return None


def mean_iterations(found: Decoding | Measured) -> float | None:
    """Of a sentence; None where none were counted."""
    return found.iterations / found.sentences if found.iterations else None


def mean_accepted_tokens(found: Decoding | Measured) -> float | None:
    """Tokens an iteration, the verifier's own included; None where drafts were not counted."""
    return found.tokens / found.iterations if found.iterations and found.accepted is not None else None


def _counted(ratio: Callable[[Decoding | Measured], float | None]) -> Callable[[Results, Source], float | None]:
    """A measure of counters: those of the whole decoded test set, or else of the sentences that were timed."""

    def measure(results: Results, source: Source) -> float | None:
        found = _decoding(results, source) or _run(results, source.record, source.mode, source.batch_size)
        return ratio(found) if found is not None and found.iterations else None

    return measure


def _timed(number: Callable[[Measured], float | None]) -> Callable[[Results, Source], float | None]:
    """A measure of a timed mode."""

    def measure(results: Results, source: Source) -> float | None:
        found = _run(results, source.record, source.mode, source.batch_size)
        return None if found is None else number(found)

    return measure


def _speed_up(results: Results, source: Source) -> float | None:
    slow = _run(results, source.over_record, source.over, source.batch_size)
    fast = _run(results, source.record, source.mode, source.batch_size)
    return None if slow is None or fast is None else slow.seconds / fast.seconds


def _timed_bleu_of_all(results: Results, source: Source) -> float | None:
    """Comparable with scores of the whole test set, unlike the BLEU of its first sentences."""
    run = _run(results, source.record, source.mode, source.batch_size)
    sizes = [table["sentences"] for table in results.scores if table["subset"] == source.set]
    return None if run is None or run.sentences not in sizes else run.bleu


def _decoding_seconds(results: Results, source: Source) -> float | None:
    found = _decoding(results, source)
    return None if found is None else found.seconds


def _decoding_speed_up(results: Results, source: Source) -> float | None:
    slow, fast = _decoding(results, source, source.over), _decoding(results, source)
    if slow is None or fast is None or slow.seconds is None or fast.seconds is None:
        return None
    return slow.seconds / fast.seconds


def _module_seconds(results: Results, source: Source) -> tuple[float, float, int] | None:
    """Seconds of the modules, of all modules, and sentences."""
    run = _run(results, source.record, source.mode, source.batch_size)
    if run is None or not run.modules:
        return None
    total = sum(run.modules.values())
    part = sum(run.modules.get(name, 0.0) for name in source.modules) if source.modules else total
    return part, total, run.sentences


def _module_milliseconds(results: Results, source: Source) -> float | None:
    found = _module_seconds(results, source)
    return None if found is None else 1e3 * found[0] / found[2]


def _module_percent(results: Results, source: Source) -> float | None:
    found = _module_seconds(results, source)
    return None if found is None else 100 * found[0] / found[1]


def _mebibytes(count: int | None) -> float | None:
    return None if count is None else count / 2**20


MEASURES: dict[str, Callable[[Results, Source], float | None]] = {
    "iterations": _counted(mean_iterations),
    "accepted tokens": _counted(mean_accepted_tokens),
    "acceptance %": _counted(lambda found: 100 * (found.accepted or 0) / max(1, found.drafted or 0)),
    "accepted block": _timed(lambda run: run.accepted_block),
    "seconds": _timed(lambda run: run.seconds),
    "milliseconds": _timed(lambda run: 1e3 * run.seconds / run.sentences),
    "timed BLEU": _timed(lambda run: run.bleu),
    "timed BLEU of all": _timed_bleu_of_all,
    "speed-up": _speed_up,
    "decoding seconds": _decoding_seconds,
    "decoding speed-up": _decoding_speed_up,
    "module ms": _module_milliseconds,
    "module %": _module_percent,
    "host MiB": _timed(lambda run: _mebibytes(run.host_bytes)),
    "device MiB": _timed(lambda run: _mebibytes(run.device_bytes)),
}
"""beside the columns of aggdec score"""
