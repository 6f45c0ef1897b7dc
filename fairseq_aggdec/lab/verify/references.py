"""What each mode is compared with, and what follows from a difference; for every command that runs several modes.

A speed-up with different outputs is worth nothing. A difference that rounding does not explain ends the command with an
error.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import modes
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.rounds import ModeResult, Runner
from fairseq_aggdec.lab.verify.differences import Difference, differences, near_tie_of, stock_computes

BEAM_ONE, GREEDY = Mode.parse(f"{modes.BEAM}1"), Mode.parse(modes.GREEDY)


def reference_of(mode: Mode, is_stock: bool, decoded: Sequence[Mode] | None = None) -> Mode | None:
    """The mode whose output `mode` must have, in the same precision; None if there is none.

    That is fairseq's own search with the same beam, or this plugin's search without drafts.

    Args:
        mode: a mode of this plugin.
        is_stock: whether fairseq's own search has this precision and these options.
        decoded: modes that are timed in this precision anyway: they are preferred, and modes with drafts are compared
            with `greedy`. None: fairseq's own search is preferred.
    """
    fairseqs, plain = mode.searches_as or BEAM_ONE, _without_drafts(mode)
    if decoded is not None:
        is_decoded = any(is_same(other, fairseqs) for other in decoded)
        is_stock = is_stock and is_decoded and (plain is None or mode.searches_as is not None)
    return fairseqs if is_stock else plain


def _without_drafts(mode: Mode) -> Mode | None:
    """This plugin's mode with the same output and without drafts; None if that is the mode itself."""
    plain = GREEDY if mode.searches_as is None else Mode.parse(f"aggressive-beam:{mode.beam}:0")
    return None if is_same(mode, plain) else plain


def is_same(mode: Mode, other: Mode) -> bool:
    """Whether two modes decode in the same way, but maybe in other precisions."""
    first, second = ((m.implementation, m.decoding, m.beam, m.budget) for m in (mode, other))
    return first == second


def missing_references(
    modes: Sequence[Mode], precision: Callable[[Mode], str], device: str, block_ngrams: bool = False
) -> list[Mode]:
    """The modes to add, so that each lossless mode has a reference in its own precision.

    Args:
        modes: all modes that are decoded.
        precision: gives the precision of a mode, one of `PRECISIONS`.
        device: `cpu` or `cuda`.
        block_ngrams: whether --block-ngrams is on, which fairseq's own search does not have.
    """
    missing: dict[str, None] = {}
    for mode in filter(_is_compared, modes):
        alike = [other for other in modes if precision(other) == precision(mode)]
        wanted = reference_of(mode, stock_computes(precision(mode), device) and not block_ngrams, alike)
        if wanted is not None and not any(is_same(other, wanted) for other in alike):
            missing[f"{wanted.name}@{precision(mode)}"] = None
    return [Mode.parse(name) for name in missing]


def find_differences(
    runners: Sequence[Runner],
    results: Sequence[ModeResult],
    precision: Callable[[Mode], str],
    symbols: Sequence[str],
    block_ngrams: bool = False,
) -> dict[str, list[Difference]]:
    """Differences of each lossless mode from its reference; prints one line on stderr for each.

    Args:
        runners: the runners that decoded the results, those of `missing_references` among them.
        results: one result for each runner, all of one batch size.
        precision, block_ngrams: see `missing_references`.
        symbols: the target dictionary's symbols, by token number.

    Returns:
        the differences by the name of the mode, an empty list where there are none; modes without a reference are
        left out.
    """
    found: dict[str, list[Difference]] = {}
    for result in filter(lambda each: _is_compared(each.mode), results):
        mode, name = result.mode, precision(result.mode)
        alike = {n: other.mode for n, other in enumerate(results) if precision(other.mode) == name}
        device = next(runner.device for runner in runners if isinstance(runner, FairseqRunner))
        is_stock = stock_computes(name, device) and not block_ngrams
        wanted = reference_of(mode, is_stock, list(alike.values()))
        number = next((n for n, other in alike.items() if wanted is not None and is_same(other, wanted)), None)
        if number is None:
            continue
        reference = runners[number]
        assert isinstance(reference, FairseqRunner)
        near_tie = 0.0 if name == "exact" else near_tie_of(name, device)
        different = differences(results[number].lists, result.lists, reference.gap(), near_tie)
        words = "fairseq's beam of 1" if wanted == BEAM_ONE else GREEDY.name
        words = words if mode.searches_as is None else f"the n-best list of a beam of {mode.beam}"
        for one in different:
            print(one.describe(mode.name, words, symbols), file=sys.stderr)
        # several settings of a mode, such as block sizes, share its name
        found.setdefault(mode.name, []).extend(different)
    return found


def refuse_differences(found: Mapping[str, Sequence[Difference]]) -> None:
    """Raise `AggdecError` if rounding does not explain all differences of `find_differences`."""
    refuse_differing({mode: sum(not one.near_tie for one in different) for mode, different in found.items()})


def refuse_differing(found: Mapping[str, int]) -> None:
    """Raise `AggdecError` if a mode has outputs that differ beyond rounding; `found` counts them by mode."""
    faulty = [mode for mode, differing in found.items() if differing]
    if faulty:
        raise AggdecError(
            f"{', '.join(faulty)}: not the output of greedy decoding, which a lossless mode has to have (of a beam: "
            "not the n-best lists of fairseq's search, or of the one that does not look ahead): do not use it, and "
            "report the command with the lines above that name sentences and tokens"
        )


def _is_compared(mode: Mode) -> bool:
    return mode.lossless or mode.searches_as is not None
