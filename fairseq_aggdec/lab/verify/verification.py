"""Compares every mode in every precision with its reference, on the user's model and machine.

The reference is fairseq's search if fairseq can compute in that precision: with a beam of one, and for
aggressive-beam with a beam of the same width. Otherwise (int8) it is `greedy` in the same precision, and
aggressive-beam is not compared. Bit-exact decoding promises more: its tokens and scores are compared bit by bit with
those of `greedy` on each sentence alone, in batches of similar length and in shuffled batches; `greedy` is also
compared with fairseq's beam of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import BEAM, GREEDY
from fairseq_aggdec.lab.bench.machine import Origin, describe
from fairseq_aggdec.lab.bench.modes import WHOLE, ModeSpec
from fairseq_aggdec.lab.bench.rounds import ModeResult, decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.lab.verify.differences import Difference
from fairseq_aggdec.lab.verify.references import EXACT, References, in_words
from fairseq_aggdec.progress import Progress

ALONE = "greedy on each sentence alone"
"""name of the reference of bit-exact decoding"""
_SHOWN = 20
"""differences in the text, at most; the JSON has all"""
_TITLES = {
    False: "Sentences with the reference's output",
    True: "Under --bit-exact: sentences with the tokens and scores, to the last bit, of greedy on each alone",
}
"""titles of the two tables; True of that of bit-exact decoding"""
_REMEDIES = {
    False: "Take sentences that it can draft for",
    True: "On a CPU, batches are drafted for where that saves time: +whole after the mode verifies whole drafts",
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
    """sentences with the same tokens, and if the reference is `ALONE` with the same scores to the last bit"""
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
class Verification(Origin):
    """The record of `aggdec verify`, which it prints as one screen of text and writes as JSON."""

    generation: Mapping[str, Any] = field(default_factory=dict)
    """fairseq's generation options that were given"""
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
        yield describe(self.machine)
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
    names = ["precision", "mode", "reference"]
    if checks[0].to_the_bit:
        names.remove("reference")  # it is the same for all
    rows: dict[tuple[str, ...], dict[str, Check]] = {}
    for check in checks:
        row = rows.setdefault(tuple(getattr(check, name) for name in names), {})
        row[check.batches] = check
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
        said = "DIFFER" if check.lossless else "differ (not lossless)"
        parts.append(f"{check.differing} {said}")
    return ", ".join(parts)


def _accepted(checks: Sequence[Check]) -> str:
    """Acceptance rate over all batch sizes."""
    if any(check.drafted is None for check in checks):
        return ""
    drafted = sum(check.drafted or 0 for check in checks)
    accepted = sum(check.accepted or 0 for check in checks)
    return f"{accepted / max(1, drafted):.0%} of {drafted:,}"


class _Decoding(NamedTuple):
    """All sentences, decoded in a mode; the arguments of `Runs.runner`."""

    mode: ModeSpec
    batch_size: int
    shuffled: bool = False


def verify(
    subject: Subject,
    modes: Sequence[ModeSpec],
    precisions: Sequence[str],
    sizes: Sequence[int],
    must_run: bool,
    command: str = "",
) -> Verification:
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
    # what is decoded once, though it is compared several times
    outputs = {
        precision: count * len({decoding for pair in each for decoding in pair})
        for precision, each in pairs.items()
    }
    done = Verification(subject.title, command, generation=subject.generation)
    with Progress(sum(outputs.values())) as progress:
        for precision in precisions:
            try:
                done.checks += _checks(subject, pairs[precision], progress)
            except AggdecError as error:
                if must_run or precision == "fp32":
                    raise
                done.left_out[precision] = str(error)
                progress.total -= outputs[precision]
    return done


def _pairs(
    modes: Sequence[ModeSpec], precision: str, device: str, sizes: Sequence[int]
) -> Iterator[tuple[_Decoding, _Decoding]]:
    """What is compared in a precision: a decoding, and that of its reference."""
    modes = [replace(mode, precision=precision) for mode in modes]
    if precision != EXACT:
        for mode, size in product(modes, sizes):
            reference = References(device).of(mode)
            # without a beam of fairseq's, none is compared
            if reference and (reference.row.is_fairseqs or not mode.row.has_beam):
                yield _Decoding(mode, size), _Decoding(reference, size)
        return
    greedy, beam_one = (
        replace(ModeSpec.parse(name), precision=precision)
        for name in (GREEDY, f"{BEAM}1")
    )
    for size in sizes:
        yield _Decoding(greedy, size), _Decoding(beam_one, size)
    alone = _Decoding(greedy, 1)
    for mode, shuffled, size in product(modes, (False, True), sizes):
        decoding = _Decoding(mode, size, shuffled)
        is_promised = mode.is_lossless and not mode.row.has_beam
        if is_promised and decoding != alone and (size > 1 or not shuffled):
            yield decoding, alone


def _checks(
    subject: Subject, pairs: Sequence[tuple[_Decoding, _Decoding]], progress: Progress
) -> list[Check]:
    """The checks of one precision; its models are freed afterwards."""
    with Runs(subject) as runs:

        @cache
        def decoded(decoding: _Decoding) -> ModeResult:
            mode, size, _ = decoding
            name = f"{mode.precision}, {mode.name}, batch size {size}"
            progress.set_description(name, refresh=False)
            return decode_once(runs.runner(*decoding), progress.update)

        return [
            _check(runs, decoding, decoded(decoding), decoded(reference))
            for decoding, reference in pairs
        ]


def _check(
    runs: Runs, decoding: _Decoding, found: ModeResult, expected: ModeResult
) -> Check:
    """The result of a mode beside its reference."""
    mode = decoding.mode
    to_the_bit = mode.precision == EXACT and expected.mode.is_greedy
    check = Check(
        mode.name,
        mode.precision,
        decoding.batch_size,
        decoding.shuffled,
        ALONE if to_the_bit else in_words(expected.mode),
        mode.is_lossless,
        len(expected.outputs),
    )
    where = f"{mode.name} in {mode.precision}, {check.batches}"
    # drafts
    if mode.row.drafter is not None and mode.row.verifies:
        stats = [output.stats for output in found.outputs.values() if output.stats]
        check.drafted = sum(sum(sentence.drafted) for sentence in stats)
        check.accepted = sum(sum(sentence.accepted) for sentence in stats)
    # tokens
    if check.lossless:
        different = runs.references.compare(expected, found)
        check.differences = sorted(different, key=lambda one: one.near_tie)
        check.near_ties = sum(one.near_tie for one in different)
        check.differing = len(different) - check.near_ties
        symbols = runs.task.target_dictionary.symbols
        check.lines = [
            one.describe(where, check.reference, symbols) for one in check.differences
        ]
    else:  # differences are expected: they are only counted
        lists = found.lists
        check.differing = sum(
            tokens != lists[sentence] for sentence, tokens in expected.lists.items()
        )
    # scores
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
