"""What a lossless mode is compared with, and what follows from a difference; for all commands that run several modes.

A speed-up with different outputs is worth nothing. A difference that rounding does not explain ends the command with an
error.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import modes
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.verify.differences import (
    Difference,
    differences,
    near_tie_of,
    stock_computes,
)

EXACT = "exact"
"""the precision of bit-exact decoding"""


@dataclass(frozen=True)
class References:
    """The references of lossless modes.

    They are fairseq's search with the same beam, or this plugin's search without drafts, in the mode's precision.
    """

    device: str
    """`cpu` or `cuda`"""
    block_ngrams: bool = False
    """whether --block-ngrams is on, which fairseq's search does not have"""

    def of(
        self, mode: ModeSpec, timed: Sequence[ModeSpec] | None = None
    ) -> ModeSpec | None:
        """The mode whose output `mode` must have; None if there is none.

        `timed`: modes that are timed anyway: those of the same precision are preferred, and modes with drafts are
        compared with `greedy`. None: fairseq's search is preferred.
        """
        has_beam = mode.row.has_beam
        beam = mode.beam
        plain = f"{modes.AGGRESSIVE_BEAM}:{beam}:0" if has_beam else modes.GREEDY
        fairseqs, without_drafts = (
            replace(ModeSpec.parse(name), precision=mode.precision)
            for name in (f"{modes.BEAM}{beam}", plain)
        )
        is_plain = mode.search == plain
        is_stock = stock_computes(mode.precision, self.device) and not self.block_ngrams
        if timed is not None:
            is_timed = any(map(fairseqs.decodes_as, timed))
            is_stock = is_stock and is_timed and (is_plain or has_beam)
        if is_stock:
            return fairseqs
        return None if is_plain else without_drafts

    def missing(self, timed: Sequence[ModeSpec]) -> list[ModeSpec]:
        """The modes to decode beside the timed ones, so that each lossless mode has a reference in its precision."""
        missing: list[ModeSpec] = []
        for mode in timed:
            wanted = self.of(mode, timed) if mode.is_lossless else None
            if wanted and not any(map(wanted.decodes_as, [*timed, *missing])):
                missing.append(wanted)
        return missing

    def note_differences(
        self, results: Sequence[ModeResult], symbols: Sequence[str]
    ) -> None:
        """Compare each lossless mode with its reference, if it has one; prints one line on stderr for each difference.

        Args:
            results: those of `missing` among them, all of one batch size; their `differences` are filled in.
            symbols: the target dictionary's symbols, by token id.
        """
        timed = [result.mode for result in results]
        for result in results:
            mode = result.mode
            wanted = self.of(mode, timed) if mode.is_lossless else None
            expected = next(
                (each for each in results if wanted and wanted.decodes_as(each.mode)),
                None,
            )
            if expected is None:
                continue
            result.differences = self.compare(expected, result)
            name = in_words(expected.mode)
            for found in result.differences:
                print(found.describe(mode.name, name, symbols), file=sys.stderr)

    def compare(self, expected: ModeResult, found: ModeResult) -> list[Difference]:
        """The differences of a mode from its reference, both in one precision; bit-exact modes have no near-ties."""
        reference = expected.runner
        assert isinstance(reference, FairseqRunner)
        precision = found.mode.precision
        is_exact = precision == EXACT and not expected.mode.row.is_fairseqs
        return differences(
            expected.lists,
            found.lists,
            reference.gap(),
            0.0 if is_exact else near_tie_of(precision, self.device),
        )


def in_words(reference: ModeSpec) -> str:
    """The name of a reference in messages and records."""
    return (
        f"fairseq's beam {reference.beam}"
        if reference.row.is_fairseqs
        else reference.search
    )


def refuse_differing(faulty: Sequence[str]) -> None:
    """Raise `AggdecError` if there are modes with outputs that differ beyond rounding; `faulty` names them."""
    if faulty:
        raise AggdecError(
            f"{', '.join(faulty)}: not the output of greedy decoding, which a lossless mode has to have (of a beam: "
            "not the n-best lists of fairseq's search, or of the one that does not look ahead): do not use it, and "
            "report the command with the lines above that name sentences and tokens"
        )
