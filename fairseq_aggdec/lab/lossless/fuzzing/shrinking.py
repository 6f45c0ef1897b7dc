"""Makes a failing case smaller, as long as it fails in the same way."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairseq_aggdec.lab.lossless.fuzzing.cases import Case

_KEPT = ("kind", "arch", "decoding", "block_heads", "max_len_b")
_LEAST = {"encoder_layers": 1, "decoder_layers": 1}


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float) -> Case:
    """The smallest failing case that was found.

    Args:
        case: a failing case.
        fails: tells whether a case fails in the same way.
        seconds: time after which no further case is tried.
    """
    end = time.monotonic() + seconds
    candidates = _smaller(case)
    while time.monotonic() < end:
        candidate = next(candidates, None)
        if candidate is None:
            return case
        if fails(candidate):
            case, candidates = candidate, _smaller(candidate)
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases that are smaller in one respect, the largest steps first."""
    for modes in _fewer(case.modes):
        yield case.changed(modes=modes)
    for batches in _fewer(case.batches):
        yield case.changed(batches=batches)
    for number, batch in enumerate(case.batches):
        for rows in _fewer(batch):
            yield case.changed(batches=_put(case.batches, number, rows))
    for models in _fewer(case.models):
        yield case.changed(models=models)
    if case.prefix:
        yield case.changed(prefix=0)
    for search in _plainer(case.search):
        yield case.changed(search=search)
    for number, mode in enumerate(case.modes):
        for plainer in _plainer(mode):
            yield case.changed(modes=_put(case.modes, number, plainer))
        for drafter in _plainer(mode.get("drafter", {})):
            yield case.changed(modes=_put(case.modes, number, {**mode, "drafter": drafter}))
    for number, model in enumerate(case.models):
        for plainer in _plainer(model):
            yield case.changed(models=_put(case.models, number, plainer))
    for number, batch in enumerate(case.batches):
        for row, (sentence, length) in enumerate(batch):
            for less in sorted({0, length // 2, length - 1} & set(range(length))):
                yield case.changed(batches=_put(case.batches, number, _put(batch, row, [sentence, less])))
    if case.search["max_len_b"] > 1:
        yield case.changed(search={**case.search, "max_len_b": case.search["max_len_b"] // 2})
    if case.twins:
        yield case.changed(twins="")
    if case.used:
        yield case.changed(used="")
    if not case.joined:
        yield case.changed(joined=True)
    if max(case.words) > 6:
        yield case.changed(words=[max(6, words // 2) for words in case.words])


def _fewer(parts: Sequence[Any]) -> Iterator[list[Any]]:
    """Shorter lists: the first half, the second half, and the list without each of its entries."""
    if len(parts) < 2:
        return
    middle = len(parts) // 2
    yield list(parts[:middle])
    yield list(parts[middle:])
    for number in range(len(parts) if len(parts) > 2 else 0):
        yield [*parts[:number], *parts[number + 1 :]]


def _plainer(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Fewer options: without one, or with one at its smallest value."""
    for name, value in options.items():
        if name in _LEAST and isinstance(value, int):
            if value > _LEAST[name]:
                yield {**options, name: _LEAST[name]}
        elif name not in _KEPT:
            yield {other: options[other] for other in options if other != name}


def _put(parts: Sequence[Any], number: int, part: Any) -> list[Any]:
    return [*parts[:number], part, *parts[number + 1 :]]
