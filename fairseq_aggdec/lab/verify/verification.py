"""Compares every mode in every precision with its reference, on the user's own model and machine.

The reference is fairseq's own search if fairseq can compute in that precision: with a beam of one, and for
aggressive-beam with a beam of the same width. Otherwise (int8) it is `greedy` in the same precision, and
aggressive-beam is not compared. Bit-exact decoding promises more: its tokens and scores are compared bit by bit with
those of `greedy` on each sentence alone, in batches of similar length and in shuffled batches; `greedy` is also
compared with fairseq's beam of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import MODES
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import WHOLE, Mode
from fairseq_aggdec.lab.bench.rounds import Output, outputs_of
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from fairseq_aggdec.lab.verify.differences import Difference, Gap, differences, near_tie_of, stock_computes
from fairseq_aggdec.lab.verify.references import BEAM_ONE, GREEDY, reference_of
from fairseq_aggdec.progress import Progress

EXACT = "exact"
"""the precision of bit-exact decoding"""
ALONE = "greedy on each sentence alone"
"""name of the reference of bit-exact decoding"""


class ScoreDifference(NamedTuple):
    """The first token with another log-probability, in a sentence whose tokens are the same."""

    sentence: int
    position: int
    expected: float
    found: float


@dataclass
class Check:
    """Result of comparing one mode with its reference."""

    mode: str
    precision: str
    batch_size: int
    shuffled: bool
    """whether batches have sentences in random order instead of similar length"""
    reference: str
    """`ALONE`, `greedy`, or fairseq's beam of some width"""
    lossless: bool
    """whether the mode promises the reference's output"""
    sentences: int
    identical: int
    """number of sentences with the same tokens, and if the reference is `ALONE` with the same scores to the last bit"""
    near_ties: int
    differing: int
    drafted: int | None
    """draft tokens; None for modes that verify no drafts"""
    accepted: int | None
    """accepted draft tokens; None for modes that verify no drafts"""
    differences: list[Difference] = field(default_factory=list)
    """differences of a lossless mode, near-ties included"""
    score_differences: list[ScoreDifference] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """a line for each difference, near-ties last"""

    @property
    def to_the_bit(self) -> bool:
        return self.reference == ALONE

    @property
    def failed(self) -> bool:
        return self.lossless and self.differing > 0

    @property
    def batches(self) -> str:
        """The batches in words."""
        words = "alone" if self.batch_size == 1 else f"in batches of {self.batch_size}"
        return f"{words}, shuffled" if self.shuffled else words

    def describe(self, symbols: Sequence[str]) -> None:
        """Fill `lines`; `symbols` are those of the target dictionary."""
        name = f"{self.mode} in {self.precision}, {self.batches}"
        in_order = sorted(self.differences, key=lambda one: one.near_tie)
        self.lines = [difference.describe(name, self.reference, symbols) for difference in in_order]
        self.lines += [
            f"{name}: sentence {sentence}, position {position}: log-probability {found!r} where {self.reference} "
            f"has {expected!r}; the tokens are the same"
            for sentence, position, expected, found in self.score_differences
        ]


@dataclass
class Verification:
    """All results."""

    checks: list[Check] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """the reason why a precision cannot be used here, by precision"""

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.failed]


class _Way(NamedTuple):
    """One way to decode all sentences."""

    mode: Mode
    batch_size: int
    shuffled: bool = False


def verify(
    subject: Subject, modes: Sequence[Mode], precisions: Sequence[str], sizes: Sequence[int], must_run: bool
) -> Verification:
    """Decode and compare all modes, and show the progress and the time left on stderr.

    Args:
        subject: what to decode.
        modes: modes of this plugin, without precisions.
        precisions: some of `bench.modes.PRECISIONS`.
        sizes: batch sizes in sentences.
        must_run: whether a precision that cannot be used here is an error; otherwise it is left out.

    Raises:
        AggdecError: the model, a mode or, if it must run, a precision cannot be used; or there is nothing to compare.
    """
    count = len(subject.sentences)
    sizes = list(dict.fromkeys(min(size, count) for size in sizes))
    pairs = {precision: list(_pairs(modes, precision, subject.device, sizes)) for precision in precisions}
    if not any(pairs.values()):
        raise AggdecError(f"nothing to compare: greedy is itself the reference in {', '.join(precisions)}")
    outputs = {precision: count * len({way for pair in each for way in pair}) for precision, each in pairs.items()}
    done = Verification()
    with Progress(sum(outputs.values())) as progress:
        for precision in precisions:
            try:
                done.checks += _checks(replace(subject, precision=precision), pairs[precision], progress)
            except AggdecError as error:
                if must_run or precision == "fp32":
                    raise
                done.left_out[precision] = str(error)
                progress.total -= outputs[precision]
    return done


def _pairs(modes: Sequence[Mode], precision: str, device: str, sizes: Sequence[int]) -> Iterator[tuple[_Way, _Way]]:
    """What is compared: a way to decode, and the way of its reference."""
    if precision == EXACT:
        yield from ((_Way(GREEDY, size), _Way(BEAM_ONE, size)) for size in sizes)
        alone = _Way(GREEDY, 1)
        for mode in (mode for mode in modes if mode.lossless):
            for way in (_Way(mode, size, shuffled) for shuffled in (False, True) for size in sizes):
                if way != alone and (way.batch_size > 1 or not way.shuffled):
                    yield way, alone
        return
    is_stock = stock_computes(precision, device)
    for mode in modes:
        reference = reference_of(mode, is_stock)
        if reference is not None and (is_stock or mode.searches_as is None):
            yield from ((_Way(mode, size), _Way(reference, size)) for size in sizes)


def _checks(subject: Subject, pairs: Sequence[tuple[_Way, _Way]], progress: Progress) -> list[Check]:
    """The checks of one precision; its models are freed afterwards."""
    with Runs(subject) as runs:

        @cache
        def decoded(way: _Way) -> dict[int, Output]:
            name = f"{subject.precision}, {way.mode.name}, batch size {way.batch_size}"
            progress.set_description(name, refresh=False)
            return outputs_of(runs.runner(*way), progress.update)

        return [_check(runs, way, decoded(way), reference, decoded(reference)) for way, reference in pairs]


def _gap(runs: Runs, reference: Mode) -> Gap:
    """Measure the gap of two tokens by the reference; makes the runner of the reference at the first call."""

    @cache
    def made() -> Gap:
        runner = runs.runner(reference, 1)
        assert isinstance(runner, FairseqRunner)
        # the length limit can be larger in a batch than for a sentence alone
        if reference.beam == 1:
            runner.generator.max_len_a, runner.generator.max_len_b = 0, runner.generator.max_len
        return runner.gap()

    return lambda *question: made()(*question)


def _check(runs: Runs, way: _Way, found: dict[int, Output], reference: _Way, expected: dict[int, Output]) -> Check:
    """The result of a mode beside its reference."""
    precision, device = runs.subject.precision, runs.subject.device
    is_exact = precision == EXACT and reference.mode == GREEDY
    name = "greedy" if reference.mode == GREEDY else f"fairseq's beam {reference.mode.beam}"
    mode, sentences = MODES[way.mode.decoding], len(expected)
    check = Check(
        way.mode.name, precision, way.batch_size, way.shuffled, ALONE if is_exact else name,
        way.mode.lossless or way.mode.searches_as is not None, sentences, 0, 0, 0, None, None,
    )  # fmt: skip
    if mode.drafter is not None and mode.acceptance != "none":
        stats = [output.stats for output in found.values() if output.stats is not None]
        check.drafted = sum(sum(sentence.drafted) for sentence in stats)
        check.accepted = sum(sum(sentence.accepted) for sentence in stats)
    if check.lossless:
        near_tie = 0.0 if is_exact else near_tie_of(precision, device)
        wanted, lists = ({number: output.lists for number, output in each.items()} for each in (expected, found))
        check.differences = differences(wanted, lists, _gap(runs, reference.mode), near_tie)
        check.differing = sum(not one.near_tie for one in check.differences)
        check.near_ties = len(check.differences) - check.differing
    else:  # differences are expected: only their number is given
        check.differing = sum(output.lists != found[number].lists for number, output in expected.items())
    if is_exact:
        check.score_differences = _score_differences(expected, found)
        check.differing += len(check.score_differences)
    check.identical = sentences - check.near_ties - check.differing
    check.describe(runs.task.target_dictionary.symbols)
    return check


def _score_differences(expected: Mapping[int, Output], found: Mapping[int, Output]) -> list[ScoreDifference]:
    """Score differences of the sentences whose tokens are the same."""
    result = []
    for sentence, output in expected.items():
        scores, others = ((each.hypothesis or {})["positional_scores"] for each in (output, found[sentence]))
        if output.tokens == found[sentence].tokens and not scores.equal(others):
            place = int((scores != others).nonzero()[0])
            result.append(ScoreDifference(sentence, place, float(scores[place]), float(others[place])))
    return result


def never_accepted(checks: Sequence[Check]) -> Mapping[str, list[Check]]:
    """By mode, the checks in which no draft token was accepted: they test greedy steps only.

    A check is left out where the mode with `+whole` accepted draft tokens in the same batches.
    """
    where: dict[str, list[Check]] = {}
    whole = {(check.mode, check.precision, check.batches) for check in checks if check.accepted}
    for check in checks:
        if check.accepted == 0 and (f"{check.mode}{WHOLE}", check.precision, check.batches) not in whole:
            where.setdefault(check.mode, []).append(check)
    return where
