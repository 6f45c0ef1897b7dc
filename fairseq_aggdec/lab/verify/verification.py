"""Compares every mode in every precision with its reference, on the user's own model and machine.

The reference is fairseq's own search if fairseq can compute in that precision: with a beam of one, and for
aggressive-beam with a beam of the same width. Otherwise (int8) it is `greedy` in the same precision, and
aggressive-beam is not compared. Bit-exact decoding promises more: its tokens and scores are compared bit by bit with
those of `greedy` on each sentence alone, in batches of similar length and in shuffled batches; `greedy` is also
compared with fairseq's beam of one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import WHOLE, Mode
from fairseq_aggdec.lab.bench.subject import Runners, Subject
from fairseq_aggdec.lab.verify.differences import Difference, Gap, differences, near_tie_of, stock_computes
from fairseq_aggdec.lab.verify.progress import Progress

EXACT = "exact"
"""the precision of bit-exact decoding"""
BEAM_ONE, GREEDY, ALONE = "fairseq's beam 1", "greedy", "greedy on each sentence alone"
"""names of the references"""
_BEAM_ONE, _GREEDY = Mode.parse("beam1"), Mode.parse("greedy")


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
    """one of `BEAM_ONE`, `GREEDY`, `ALONE`, or fairseq's beam of another width"""
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

    def lines(self, symbols: Sequence[str]) -> Iterator[str]:
        """A line for each difference, near-ties last; `symbols` are those of the target dictionary."""
        name = f"{self.mode} in {self.precision}, {self.batches}"
        for difference in sorted(self.differences, key=lambda one: one.near_tie):
            yield difference.describe(name, self.reference, symbols)
        for sentence, position, expected, found in self.score_differences:
            yield (
                f"{name}: sentence {sentence}, position {position}: log-probability {found!r} where {self.reference} "
                f"has {expected!r}; the tokens are the same"
            )


@dataclass
class Verification:
    """All results."""

    checks: list[Check] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """the reason why a precision cannot be used here, by precision"""

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.failed]


@dataclass(frozen=True)
class _Way:
    """One way to decode all sentences."""

    mode: Mode
    batch_size: int
    shuffled: bool = False


@dataclass(frozen=True)
class _Decoded:
    tokens: dict[int, list[int]]
    """output tokens by sentence, EOS included; of a beam search those of all its hypotheses, one behind the other"""
    scores: dict[int, Tensor]
    """log-probability of each token, by sentence"""
    drafted: int
    accepted: int


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
    pairs = {precision: list(_pairs(subject, modes, precision, sizes)) for precision in precisions}
    if not any(pairs.values()):
        raise AggdecError(f"nothing to compare: greedy is itself the reference in {', '.join(precisions)}")
    done = Verification()
    with Progress(count * sum(len(_ways(each)) for each in pairs.values())) as progress:
        for precision in precisions:
            try:
                done.checks += _checks(replace(subject, precision=precision), pairs[precision], progress)
            except AggdecError as error:
                if must_run or precision == "fp32":
                    raise
                done.left_out[precision] = str(error)
                progress.total -= count * len(_ways(pairs[precision]))
    return done


def _ways(pairs: Iterable[tuple[_Way, _Way, str]]) -> set[_Way]:
    return {way for pair in pairs for way in pair[:2]}


def _pairs(
    subject: Subject, modes: Sequence[Mode], precision: str, sizes: Sequence[int]
) -> Iterator[tuple[_Way, _Way, str]]:
    """What is compared: a way to decode, the way of its reference, and the name of the reference."""
    if precision == EXACT:
        yield from ((_Way(_GREEDY, size), _Way(_BEAM_ONE, size), BEAM_ONE) for size in sizes)
        alone = _Way(_GREEDY, 1)
        for mode in (mode for mode in modes if mode.lossless):
            for way in (_Way(mode, size, shuffled) for shuffled in (False, True) for size in sizes):
                if way != alone and (way.batch_size > 1 or not way.shuffled):
                    yield way, alone, ALONE
        return
    stock = stock_computes(precision, subject.device)
    for mode in modes:
        if mode.searches_as is not None:
            if stock:
                for size in sizes:
                    yield _Way(mode, size), _Way(mode.searches_as, size), f"fairseq's beam {mode.beam}"
        elif stock or mode != _GREEDY:
            for size in sizes:
                way = _Way(mode, size)
                yield way, _Way(_BEAM_ONE if stock else _GREEDY, size), BEAM_ONE if stock else GREEDY


def _checks(subject: Subject, pairs: Sequence[tuple[_Way, _Way, str]], progress: Progress) -> list[Check]:
    """The checks of one precision; its models are freed afterwards."""
    near_tie = near_tie_of(subject.precision, subject.device)
    with Runners(subject) as runners:

        @cache
        def decoded(way: _Way) -> _Decoded:
            progress.set_description(
                f"{subject.precision}, {way.mode.name}, batch size {way.batch_size}", refresh=False
            )
            return _decode(runners, way, progress)

        return [
            _check(subject.precision, way, decoded(way), name, decoded(other), _gap(runners, other.mode), near_tie)
            for way, other, name in pairs
        ]


def _decode(runners: Runners, way: _Way, progress: Progress) -> _Decoded:
    runner = runners.make(way.mode, way.batch_size, way.shuffled)
    tokens: dict[int, list[int]] = {}
    scores: dict[int, Tensor] = {}
    drafted = accepted = 0
    for number in range(len(runner.batches)):
        for sentence, output in runner.outputs(number, runner.decode(number)).items():
            assert output.hypothesis is not None
            tokens[sentence] = output.tokens if way.mode.beam == 1 else output.lists
            scores[sentence] = output.hypothesis["positional_scores"].cpu()
            if output.stats is not None:
                drafted += sum(output.stats.drafted)
                accepted += sum(output.stats.accepted)
            progress.update()
    return _Decoded(tokens, scores, drafted, accepted)


def _gap(runners: Runners, reference: Mode) -> Gap:
    """Measure the gap of two tokens by the reference; makes the runner of the reference at the first call."""

    @cache
    def made() -> Gap:
        runner = runners.make(reference, 1)
        assert isinstance(runner, FairseqRunner)
        # the length limit can be larger in a batch than for a sentence alone
        if reference.beam == 1:
            runner.generator.max_len_a, runner.generator.max_len_b = 0, runner.generator.max_len
        return runner.gap()

    return lambda *question: made()(*question)


def _check(
    precision: str, way: _Way, found: _Decoded, name: str, expected: _Decoded, gap: Gap, near_tie: float
) -> Check:
    lossless = way.mode.lossless or way.mode.searches_as is not None
    to_the_bit, drafts = name == ALONE, way.mode.decoding not in ("greedy", "nar")
    if not lossless:  # differences are expected: only their number is given
        differing = sum(tokens != found.tokens[sentence] for sentence, tokens in expected.tokens.items())
        others: list[Difference] = []
    else:
        others = differences(expected.tokens, found.tokens, gap, 0.0 if to_the_bit else near_tie)
        differing = sum(not one.near_tie for one in others)
    rounded = _score_differences(expected, found) if to_the_bit else []
    near_ties = len(others) - differing if lossless else 0
    differing += len(rounded)
    sentences = len(expected.tokens)
    return Check(
        way.mode.name, precision, way.batch_size, way.shuffled, name, lossless, sentences,
        identical=sentences - near_ties - differing, near_ties=near_ties, differing=differing,
        drafted=found.drafted if drafts else None, accepted=found.accepted if drafts else None,
        differences=others, score_differences=rounded,
    )  # fmt: skip


def _score_differences(expected: _Decoded, found: _Decoded) -> list[ScoreDifference]:
    """Score differences of the sentences whose tokens are the same."""
    result = []
    for sentence, scores in expected.scores.items():
        others = found.scores[sentence]
        if expected.tokens[sentence] == found.tokens[sentence] and not scores.equal(others):
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
