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
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench import machine
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import WHOLE, Mode
from fairseq_aggdec.lab.bench.rounds import ModeResult, decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.lab.verify.differences import Difference
from fairseq_aggdec.lab.verify.references import (
    BEAM_ONE,
    EXACT,
    GREEDY,
    References,
    in_words,
)
from fairseq_aggdec.progress import Progress

ALONE = "greedy on each sentence alone"
"""name of the reference of bit-exact decoding"""
_SHOWN = 20
"""number of differences in the text; the JSON has all"""
_TITLES = {
    False: "Sentences with the reference's output",
    True: "Under --bit-exact: sentences with the tokens and scores, to the last bit, of greedy on each alone",
}
"""titles of the two tables; True of that of bit-exact decoding"""
_REMEDIES = {
    False: "Take sentences that it can draft for",
    True: "On a CPU, batches are drafted for where that saves time: +whole behind the mode verifies whole drafts",
}
"""advice if no draft token was accepted; True if that happened in batches only"""


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
    identical: int = 0
    """number of sentences with the same tokens, and if the reference is `ALONE` with the same scores to the last bit"""
    near_ties: int = 0
    differing: int = 0
    drafted: int | None = None
    """draft tokens; None for modes that verify no drafts"""
    accepted: int | None = None
    """accepted draft tokens; None for modes that verify no drafts"""
    differences: list[Difference] = field(default_factory=list)
    """differences in the tokens of a lossless mode, near-ties last"""
    lines: list[str] = field(default_factory=list)
    """a line for each of them, then one for each sentence with the same tokens and other scores"""

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


@dataclass
class Verification:
    """The record of `aggdec verify`, which it prints as one screen of text and writes as JSON."""

    title: str
    """what was decoded, in words"""
    command: str
    generation: Mapping[str, Any]
    """fairseq's generation options that were given"""
    date: str = field(default_factory=machine.now)
    commit: str | None = field(default_factory=machine.commit)
    machine: dict[str, Any] = field(default_factory=machine.machine)
    left_out: dict[str, str] = field(default_factory=dict)
    """the reason why a precision cannot be used here, by precision"""
    checks: list[Check] = field(default_factory=list)

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.failed]

    def save(self, path: Path) -> None:
        """Write JSON with one line for each check."""
        structured_files.write(path, {"passed": not self.failed, **vars(self)})

    def text(self) -> str:
        """The text for the terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.title
        yield machine.describe(self.machine)
        yield ""
        for to_the_bit, title in _TITLES.items():
            checks = [check for check in self.checks if check.to_the_bit == to_the_bit]
            if checks:
                yield f"{title}:\n\n{_table(checks)}\n"
        for precision, reason in self.left_out.items():
            yield f"{precision} was left out: {reason}"
        for mode, checks in self.never_accepted().items():
            places = "; ".join(f"{check.precision} {check.batches}" for check in checks)
            yield (
                f"{mode} never accepted a drafted token, so that its check proves little: {places}. "
                + _REMEDIES[all(check.batch_size > 1 for check in checks)]
            )
        failed_first = sorted(self.checks, key=lambda check: not check.failed)
        found = [line for check in failed_first for line in check.lines]
        yield from islice(found, _SHOWN)
        if len(found) > _SHOWN:
            yield f"... and {len(found) - _SHOWN} more; --json has all"
        where = ", ".join(
            dict.fromkeys(f"{check.mode} in {check.precision}" for check in self.failed)
        )
        yield (
            f"FAILED: {where}: differs from the reference, and no near-tie explains it"
            if where
            else "passed: no lossless mode differs from its reference"
        )

    def never_accepted(self) -> Mapping[str, list[Check]]:
        """By mode, the checks in which no draft token was accepted: they test greedy steps only.

        A check is left out where the mode with `+whole` accepted draft tokens in the same batches.
        """
        where: dict[str, list[Check]] = {}
        accepting = {
            (check.mode, check.precision, check.batches)
            for check in self.checks
            if check.accepted
        }
        for check in self.checks:
            if (
                check.accepted == 0
                and (f"{check.mode}{WHOLE}", check.precision, check.batches)
                not in accepting
            ):
                where.setdefault(check.mode, []).append(check)
        return where


def _table(checks: Sequence[Check]) -> str:
    """A table with a row for each precision and mode, and a column for each way to make batches."""
    in_order = sorted(checks, key=lambda check: (check.shuffled, check.batch_size))
    columns = list(dict.fromkeys(check.batches for check in in_order))
    names = (
        ["precision", "mode"]
        if checks[0].to_the_bit
        else ["precision", "mode", "reference"]
    )
    rows: dict[tuple[str, ...], dict[str, Check]] = {}
    for check in checks:
        rows.setdefault(tuple(getattr(check, name) for name in names), {})[
            check.batches
        ] = check
    cells = [
        [
            *key,
            *(_cell(row[column]) if column in row else "" for column in columns),
            _accepted(list(row.values())),
        ]
        for key, row in rows.items()
    ]
    return text_table([*names, *columns, "accepted of drafted"], cells, TERMINAL)


def _cell(check: Check) -> str:
    parts = [f"{check.identical} of {check.sentences}"]
    if check.near_ties:
        parts.append(f"{check.near_ties} near-tie{'s' * (check.near_ties > 1)}")
    if check.differing:
        parts.append(
            f"{check.differing} DIFFER"
            if check.lossless
            else f"{check.differing} differ (not lossless)"
        )
    return ", ".join(parts)


def _accepted(checks: Sequence[Check]) -> str:
    """Acceptance rate over all batch sizes."""
    if any(check.drafted is None for check in checks):
        return ""
    drafted, accepted = (
        sum(check.drafted or 0 for check in checks),
        sum(check.accepted or 0 for check in checks),
    )
    return f"{accepted / max(1, drafted):.0%} of {drafted:,}"


class _Way(NamedTuple):
    """One way to decode all sentences."""

    mode: Mode
    batch_size: int
    shuffled: bool = False


def verify(
    subject: Subject, modes: Sequence[Mode], precisions: Sequence[str], sizes: Sequence[int], must_run: bool,
    command: str = "",
) -> Verification:  # fmt: skip
    """Decode and compare all modes, and show the progress and the time left on stderr.

    Args:
        subject, modes: what to decode, and modes of this plugin, without precisions.
        precisions, sizes: some of `bench.modes.PRECISIONS`, and batch sizes in sentences.
        must_run: whether a precision that cannot be used here is an error; otherwise it is left out.
        command: the command line, for the record.

    Raises:
        AggdecError: the model, a mode or, if it must run, a precision cannot be used; or there is nothing to compare.
    """
    count = len(subject.sentences)
    sizes = list(dict.fromkeys(min(size, count) for size in sizes))
    pairs = {
        precision: list(_pairs(modes, precision, subject.device, sizes))
        for precision in precisions
    }
    if not any(pairs.values()):
        raise AggdecError(
            f"nothing to compare: greedy is itself the reference in {', '.join(precisions)}"
        )
    outputs = {
        precision: count * len({way for pair in each for way in pair})
        for precision, each in pairs.items()
    }
    done = Verification(subject.title, command, subject.generation)
    with Progress(sum(outputs.values())) as progress:
        for precision in precisions:
            try:
                done.checks += _checks(
                    replace(subject, precision=precision), pairs[precision], progress
                )
            except AggdecError as error:
                if must_run or precision == "fp32":
                    raise
                done.left_out[precision] = str(error)
                progress.total -= outputs[precision]
    return done


def _pairs(
    modes: Sequence[Mode], precision: str, device: str, sizes: Sequence[int]
) -> Iterator[tuple[_Way, _Way]]:
    """What is compared: a way to decode, and the way of its reference."""
    if precision == EXACT:
        yield from ((_Way(GREEDY, size), _Way(BEAM_ONE, size)) for size in sizes)
        alone = _Way(GREEDY, 1)
        for mode in (
            mode for mode in modes if mode.is_lossless and not mode.row.has_beam
        ):
            for way in (
                _Way(mode, size, shuffled)
                for shuffled in (False, True)
                for size in sizes
            ):
                if way != alone and (way.batch_size > 1 or not way.shuffled):
                    yield way, alone
        return
    references = References(device, lambda mode: precision)
    for mode in modes:
        reference = references.of(mode)
        if reference is not None and (
            reference.row.is_fairseqs or not mode.row.has_beam
        ):
            yield from ((_Way(mode, size), _Way(reference, size)) for size in sizes)


def _checks(
    subject: Subject, pairs: Sequence[tuple[_Way, _Way]], progress: Progress
) -> list[Check]:
    """The checks of one precision; its models are freed afterwards."""
    with Runs(subject) as runs:

        @cache
        def decoded(way: _Way) -> tuple[FairseqRunner, ModeResult]:
            name = f"{subject.precision}, {way.mode.name}, batch size {way.batch_size}"
            progress.set_description(name, refresh=False)
            runner = runs.runner(*way)
            assert isinstance(runner, FairseqRunner)
            return runner, decode_once(runner, progress.update)

        return [
            _check(runs, way, decoded(way)[1], *decoded(reference))
            for way, reference in pairs
        ]


def _check(
    runs: Runs,
    way: _Way,
    found: ModeResult,
    reference: FairseqRunner,
    expected: ModeResult,
) -> Check:
    """The result of a mode beside its reference."""
    mode, precision = way.mode, runs.subject.precision
    to_the_bit = precision == EXACT and reference.mode.is_greedy
    name = ALONE if to_the_bit else in_words(reference.mode)
    check = Check(
        mode.name,
        precision,
        way.batch_size,
        way.shuffled,
        name,
        mode.is_lossless,
        len(expected.outputs),
    )
    where = f"{mode.name} in {precision}, {check.batches}"
    if mode.row.drafter is not None and mode.row.verifies:
        stats = [
            output.stats
            for output in found.outputs.values()
            if output.stats is not None
        ]
        check.drafted = sum(sum(sentence.drafted) for sentence in stats)
        check.accepted = sum(sum(sentence.accepted) for sentence in stats)
    if check.lossless:
        different = runs.references.compare(
            reference, expected.lists, found.lists, precision
        )
        check.differences = sorted(different, key=lambda one: one.near_tie)
        check.near_ties = sum(one.near_tie for one in different)
        check.differing = len(different) - check.near_ties
        symbols = runs.task.target_dictionary.symbols
        check.lines = [one.describe(where, name, symbols) for one in check.differences]
    else:  # differences are expected: only their number is given
        check.differing = sum(
            output.lists != found.outputs[n].lists
            for n, output in expected.outputs.items()
        )
    if to_the_bit:
        others = [f"{where}: {line}" for line in _other_scores(expected, found)]
        check.differing += len(others)
        check.lines += others
    check.identical = check.sentences - check.near_ties - check.differing
    return check


def _other_scores(expected: ModeResult, found: ModeResult) -> Iterator[str]:
    """A line for each sentence with the same tokens and another log-probability, of the first such token."""
    for sentence, output in expected.outputs.items():
        other = found.outputs[sentence]
        wanted, scores = (
            (each.hypothesis or {})["positional_scores"] for each in (output, other)
        )
        if output.tokens == other.tokens and not wanted.equal(scores):
            place = int((wanted != scores).nonzero()[0])
            yield (
                f"sentence {sentence}, position {place}: log-probability {float(scores[place])!r} where {ALONE} has "
                f"{float(wanted[place])!r}; the tokens are the same"
            )
