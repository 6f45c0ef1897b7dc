"""What a lossless mode is compared with, and what follows from a difference; for all commands that run several modes.

A speed-up with different outputs is worth nothing. A difference that rounding does not explain ends the command with an
error.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import modes
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.rounds import ModeResult, ModeRunner
from fairseq_aggdec.lab.verify.differences import (
    Difference,
    differences,
    near_tie_of,
    stock_computes,
)

BEAM_ONE, GREEDY = Mode.parse(f"{modes.BEAM}1"), Mode.parse(modes.GREEDY)
EXACT = "exact"
"""the precision of bit-exact decoding"""

Lists = Mapping[int, Sequence[int]]
"""`Output.lists` by sentence number"""


@dataclass(frozen=True)
class References:
    """The references of lossless modes.

    They are fairseq's own search with the same beam, or this plugin's search without drafts, in the mode's precision.
    """

    device: str
    """`cpu` or `cuda`"""
    precision: Callable[[Mode], str]
    """gives the precision of a mode, one of `PRECISIONS`"""
    block_ngrams: bool = False
    """whether --block-ngrams is on, which fairseq's own search does not have"""

    def of(self, mode: Mode, timed: Sequence[Mode] | None = None) -> Mode | None:
        """The mode whose output `mode` must have; None if there is none.

        `timed`: modes that are timed in this precision anyway: they are preferred, and modes with drafts are compared
        with `greedy`. None: fairseq's own search is preferred.
        """
        has_beam = mode.row.has_beam
        fairseqs = Mode.parse(f"{modes.BEAM}{mode.beam}")
        plain = (
            Mode.parse(f"{modes.AGGRESSIVE_BEAM}:{mode.beam}:0") if has_beam else GREEDY
        )
        is_plain = mode.search == plain.search
        is_stock = (
            stock_computes(self.precision(mode), self.device) and not self.block_ngrams
        )
        if timed is not None:
            is_timed = any(other.search == fairseqs.search for other in timed)
            is_stock = is_stock and is_timed and (is_plain or has_beam)
        if is_stock:
            return fairseqs
        return None if is_plain else plain

    def missing(self, timed: Sequence[Mode]) -> list[Mode]:
        """The modes to decode beside the timed ones, so that each lossless mode has a reference in its precision."""
        missing: dict[str, None] = {}
        for mode in timed:
            alike = [
                other
                for other in timed
                if self.precision(other) == self.precision(mode)
            ]
            wanted = self.of(mode, alike) if mode.is_lossless else None
            if wanted is not None and all(
                other.search != wanted.search for other in alike
            ):
                missing[f"{wanted.name}@{self.precision(mode)}"] = None
        return [Mode.parse(name) for name in missing]

    def differences(
        self,
        runners: Sequence[ModeRunner],
        results: Sequence[ModeResult],
        symbols: Sequence[str],
    ) -> dict[str, list[Difference]]:
        """Differences of each lossless mode from its reference, by its name; prints one line on stderr for each.

        Modes without a reference are left out.

        Args:
            runners: the runners that decoded the results, those of `missing` among them, all of one batch size.
            results: one for each runner.
            symbols: the target dictionary's symbols, by token number.
        """
        found: dict[str, list[Difference]] = {}
        for result in results:
            mode, precision = result.mode, self.precision(result.mode)
            alike = [
                (runner, other)
                for runner, other in zip(runners, results, strict=True)
                if self.precision(other.mode) == precision
            ]
            wanted = (
                self.of(mode, [other.mode for _, other in alike])
                if mode.is_lossless
                else None
            )
            pairs = [
                pair
                for pair in alike
                if wanted is not None and pair[1].mode.search == wanted.search
            ]
            if not pairs:
                continue
            reference, expected = pairs[0]
            assert isinstance(reference, FairseqRunner)
            different = self.compare(reference, expected.lists, result.lists, precision)
            for one in different:
                print(
                    one.describe(mode.name, in_words(reference.mode), symbols),
                    file=sys.stderr,
                )
            # several settings of a mode, such as block sizes, share its name
            found.setdefault(mode.name, []).extend(different)
        return found

    def compare(
        self, reference: FairseqRunner, expected: Lists, found: Lists, precision: str
    ) -> list[Difference]:
        """The differences of a mode from its reference, both in `precision`; bit-exact modes have no near-ties."""
        is_exact = precision == EXACT and not reference.mode.row.is_fairseqs
        return differences(
            expected,
            found,
            reference.gap(),
            0.0 if is_exact else near_tie_of(precision, self.device),
        )


def in_words(reference: Mode) -> str:
    """The name of a reference in messages and records."""
    return (
        f"fairseq's beam {reference.beam}"
        if reference.row.is_fairseqs
        else reference.search
    )


def refuse_differing(found: Mapping[str, int]) -> None:
    """Raise `AggdecError` if a mode has outputs that differ beyond rounding; `found` counts them by mode."""
    faulty = [mode for mode, differing in found.items() if differing]
    if faulty:
        raise AggdecError(
            f"{', '.join(faulty)}: not the output of greedy decoding, which a lossless mode has to have (of a beam: "
            "not the n-best lists of fairseq's search, or of the one that does not look ahead): do not use it, and "
            "report the command with the lines above that name sentences and tokens"
        )
