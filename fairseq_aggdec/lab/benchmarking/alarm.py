"""Compares the outputs of lossless modes with those of greedy decoding, for every command that runs several modes.

A speed-up with different outputs is worth nothing. A difference that rounding does not explain ends the command with an
error.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.results import ModeResult
from fairseq_aggdec.lab.benchmarking.rounds import Runner
from fairseq_aggdec.lab.lossless.differences import Difference, differences, near_tie_of, stock_computes


def missing_references(modes: Sequence[Mode], precision: Callable[[Mode], str]) -> list[Mode]:
    """The modes to add, so that each lossless mode has a reference in its own precision.

    That is `greedy`, and of a beam search that looks ahead fairseq's beam search, or the same without looking ahead.

    Args:
        modes: all modes that are decoded.
        precision: gives the precision of a mode, one of `PRECISIONS`.
    """
    wanted = dict.fromkeys(precision(mode) for mode in modes if mode.lossless)
    present = {precision(mode) for mode in modes if _is_reference(mode)}
    missing = [f"greedy@{name}" for name in wanted if name not in present]
    for mode in modes:
        looks_ahead = mode.searches_as is not None and mode.budget != 0
        if looks_ahead and not any(_is_reference_of(mode, other, precision) for other in modes):
            missing.append(f"aggressive-beam:{mode.beam}:0@{precision(mode)}")
    return [Mode.parse(name) for name in dict.fromkeys(missing)]


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
        mode = result.mode
        if mode.searches_as is not None:
            different = _other_lists(mode, result, zip(runners, results, strict=True), precision)
            if different is not None:
                found.setdefault(mode.name, []).extend(different)
            continue
        is_greedy = _is_reference(mode)
        if not mode.lossless:
            continue
        for runner, reference in zip(runners, results, strict=True):
            fits = _is_stock(reference.mode) if is_greedy else _is_reference(reference.mode)
            if not fits or precision(reference.mode) != precision(mode):
                continue
            assert isinstance(runner, FairseqRunner)
            if not is_greedy or (not block_ngrams and stock_computes(precision(mode), runner.device)):
                near_tie = 0.0 if precision(mode) == "exact" else near_tie_of(precision(mode), runner.device)
                # several settings of a mode, such as block sizes, share its name
                found.setdefault(mode.name, []).extend(
                    differences(_tokens(reference), _tokens(result), runner.gap(), near_tie)
                )
                break
    return found


def _other_lists(
    mode: Mode, result: ModeResult, others: Iterable[tuple[Runner, ModeResult]], precision: Callable[[Mode], str]
) -> list[Difference] | None:
    """Where a beam search has other n-best lists than its reference; None if it is the reference."""
    fitting = [other for other in others if _is_reference_of(mode, other[1].mode, precision)]
    if not fitting:
        return None
    runner, reference = min(fitting, key=lambda other: other[1].mode.implementation != "fairseq")
    assert isinstance(runner, FairseqRunner)
    near_tie = near_tie_of(precision(mode), runner.device)
    return differences(_lists(reference), _lists(result), runner.gap(), near_tie)


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
        AggdecError: some are no near-ties; the message names the modes.
    """
    refuse_differing({mode: sum(not one.near_tie for one in different) for mode, different in found.items()})


def refuse_differing(found: Mapping[str, int]) -> None:
    """Raise `AggdecError` if a mode has outputs that differ beyond rounding; `found` is {mode: how many}."""
    faulty = [mode for mode, differing in found.items() if differing]
    if faulty:
        raise AggdecError(
            f"{', '.join(faulty)}: not the output of greedy decoding, which a lossless mode has to have (of a beam: "
            "not the n-best lists of fairseq's search, or of the one that does not look ahead): do not use it, and "
            "report the command with the lines above that name sentences and tokens"
        )


def _is_reference(mode: Mode) -> bool:
    return mode.implementation == "fairseq_aggdec" and mode.decoding == "greedy"


def _is_reference_of(mode: Mode, other: Mode, precision: Callable[[Mode], str]) -> bool:
    """Whether a beam search is to have the lists of another: fairseq's, or, looking ahead, one that does not."""
    if other.beam != mode.beam or precision(other) != precision(mode):
        return False
    if other.implementation == "fairseq":
        return other.decoding == "beam"
    return other.searches_as is not None and other.budget == 0 and mode.budget != 0  # 0: does not look ahead


def _is_stock(mode: Mode) -> bool:
    return mode.implementation == "fairseq" and mode.decoding == "beam" and mode.beam == 1


def _lists(result: ModeResult) -> dict[int, list[int]]:
    return {number: output.lists for number, output in result.outputs.items()}


def _tokens(result: ModeResult) -> dict[int, list[int]]:
    return {number: output.tokens for number, output in result.outputs.items()}
