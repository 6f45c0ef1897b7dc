"""Compares the outputs of lossless modes with those of greedy decoding, for every command that runs several modes.

A speed-up with different outputs is worth nothing. A difference that rounding does not explain ends the command with an
error.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.rounds import ModeResult, Runner
from fairseq_aggdec.lab.verify.differences import Difference, differences, near_tie_of, stock_computes


def missing_references(modes: Sequence[Mode], precision: Callable[[Mode], str]) -> list[Mode]:
    """The modes to add, so that each lossless mode has a reference in its own precision.

    That is `greedy`, and of a beam search that looks ahead fairseq's beam search, or the same without looking ahead.

    Args:
        modes: all modes that are decoded.
        precision: gives the precision of a mode, one of `PRECISIONS`.
    """
    missing: dict[str, None] = {}
    for mode in modes:
        name = "greedy" if mode.searches_as is None else f"aggressive-beam:{mode.beam}:0"
        needs = mode.budget != 0 if mode.searches_as else mode.lossless and not _is_greedy(mode)
        alike = (other for other in modes if precision(other) == precision(mode))
        if needs and all(_rank(mode, other) is None for other in alike):
            missing[f"{name}@{precision(mode)}"] = None
    return [Mode.parse(name) for name in missing]


def compare_with_greedy(
    runners: Sequence[Runner],
    results: Sequence[ModeResult],
    precision: Callable[[Mode], str],
    block_ngrams: bool = False,
) -> dict[str, list[Difference]]:
    """Differences of each lossless mode from its reference in the same precision.

    That is `greedy`; of `greedy`, fairseq's beam of 1; of a beam search, one that has the same n-best lists.

    Args:
        runners: the runners that decoded the results, with `greedy` in the precision of each lossless mode among them.
        results: one result for each runner, all of one batch size.
        precision: see `missing_references`.
        block_ngrams: whether --block-ngrams is on. fairseq's own search does not have that rule, so `greedy` is not
            compared with it then.

    Returns:
        the differences by the name of the mode, an empty list where there are none; modes without a reference are
        left out.
    """
    found: dict[str, list[Difference]] = {}
    for result in results:
        mode, name = result.mode, precision(result.mode)
        alike = [(_rank(mode, other.mode), n) for n, other in enumerate(results) if precision(other.mode) == name]
        fitting = [(rank, number) for rank, number in alike if rank is not None]
        if not fitting:
            continue
        _, best = min(fitting)
        runner, reference = runners[best], results[best]
        assert isinstance(runner, FairseqRunner)
        if mode.decoding == "greedy" and (block_ngrams or not stock_computes(name, runner.device)):
            continue
        near_tie = 0.0 if name == "exact" else near_tie_of(name, runner.device)
        # several settings of a mode, such as block sizes, share its name
        found.setdefault(mode.name, []).extend(differences(_lists(reference), _lists(result), runner.gap(), near_tie))
    return found


def _rank(mode: Mode, other: Mode) -> int | None:
    """How well `other` serves as the reference of `mode`: 0 best, 1 if there is no better, None not at all."""
    is_fairseqs = other.implementation == "fairseq" and other.decoding == "beam" and other.beam == mode.beam
    if mode.searches_as is not None:
        if is_fairseqs:
            return 0
        is_plain = other.searches_as is not None and other.beam == mode.beam and other.budget == 0
        return 1 if is_plain and mode.budget != 0 else None
    if not mode.lossless:
        return None
    return 0 if (is_fairseqs if mode.decoding == "greedy" else _is_greedy(other)) else None


def print_differences(found: Mapping[str, Sequence[Difference]], symbols: Sequence[str]) -> None:
    """Print one line on stderr for each difference.

    Args:
        found: the differences by mode, from `compare_with_greedy`.
        symbols: the target dictionary's symbols, by token number.
    """
    for mode, different in found.items():
        searched = Mode.parse(mode).searches_as
        reference = "fairseq's beam of 1" if mode.partition("@")[0] == "greedy" else "greedy"
        reference = reference if searched is None else f"the n-best list of a beam of {searched.beam}"
        for difference in different:
            print(difference.describe(mode, reference, symbols), file=sys.stderr)


def refuse_differences(found: Mapping[str, Sequence[Difference]]) -> None:
    """Raise an error if rounding does not explain all differences.

    Args:
        found: the differences by mode.

    Raises:
        AggdecError: there are differences that are no near-ties; the message names the modes.
    """
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


def _is_greedy(mode: Mode) -> bool:
    return mode.implementation == "fairseq_aggdec" and mode.decoding == "greedy"


def _lists(result: ModeResult) -> dict[int, list[int]]:
    return {number: output.lists for number, output in result.outputs.items()}
