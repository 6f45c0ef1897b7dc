"""Options of the modes that can accept draft tokens which are not the verifier's own: `gad++`, `iad++`, `blockwise`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from fairseq_aggdec.decoding.verification import EXACT, Acceptance, Criterion, TopBeta, WithinDistance
from fairseq_aggdec.errors import AggdecError, check_least

HIGH_QUALITY = (3, 1.0)
"""top-beta and tolerance of papers/000's high-quality setting, the default of `gad++` and `iad++`"""


@dataclass
class AcceptanceOptions(FairseqDataclass):
    """Options of a task, for the command line and for hydra."""

    top_beta: Optional[int] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "gad++, iad++, blockwise: accept a draft token that is among this many best ones of the verifier: "
            "beta of Ge et al. 2022, Eq. 8 (gad++, iad++: 3 unless given, and 5 in their high-efficiency setting; "
            "blockwise: no limit, and only the best one without --tolerance, too)"
        },
    )
    tolerance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, iad++, blockwise: accept a draft token whose log-probability is below the best token's by "
            "at most this: tau of Ge et al. 2022, Eq. 9 (gad++, iad++: 1.0 unless given, and 3.0 in their "
            "high-efficiency setting; blockwise: no limit)"
        },
    )
    eos_argmax: bool = field(
        default=False,
        metadata={
            "help": "gad++, iad++, blockwise: accept a drafted end of sentence only where it is the verifier's choice"
        },
    )
    accept_distance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, blockwise: for outputs that are numbers, such as intensities: accept a draft token whose "
            "number differs from the verifier's by at most this"
        },
    )
    min_block: int = field(
        default=0,
        metadata={"help": "gad++, blockwise: commit at least this many tokens in an iteration, accepted or not"},
    )


def check_acceptance_options(cfg: Any) -> None:
    """Raises `AggdecError` for a value that makes no sense."""
    check_least(cfg, 1, "top_beta")
    check_least(cfg, 0, "tolerance", "accept_distance", "min_block")
    if cfg.accept_distance is not None and not (cfg.top_beta is None and cfg.tolerance is None):
        raise AggdecError("--accept-distance does not go with --top-beta and --tolerance: give one criterion")


def acceptance_of(mode: str, cfg: Any, dictionary: Dictionary, most_committed: int) -> Acceptance:
    """The rule by which a mode, as `resolved_mode` returns it, accepts draft tokens.

    Raises:
        AggdecError: --top-beta is above the vocabulary's size, --accept-distance is given for a vocabulary without
            numbers, or --min-block is above what an iteration can commit.
    """
    if mode not in ("gad++", "iad++", "blockwise"):
        return EXACT
    if cfg.min_block > most_committed:
        raise AggdecError(f"--min-block {cfg.min_block}: an iteration commits at most {most_committed} tokens here")
    strict = (dictionary.eos(),) if cfg.eos_argmax else ()
    return Acceptance(_criterion(mode, cfg, dictionary), max(1, cfg.min_block), strict)


def _criterion(mode: str, cfg: Any, dictionary: Dictionary) -> Criterion | None:
    if cfg.accept_distance is not None:
        values = values_of(dictionary.symbols)
        if bool(values.isnan().all()):
            raise AggdecError("--accept-distance: the target dictionary has no numbers, which alone have distances")
        return WithinDistance(cfg.accept_distance, values)
    vocabulary = len(dictionary)
    beta, tolerance = cfg.top_beta, cfg.tolerance
    if mode in ("gad++", "iad++"):
        beta, tolerance = (
            (HIGH_QUALITY[0] if beta is None else beta),
            (HIGH_QUALITY[1] if tolerance is None else tolerance),
        )
    elif beta is None and tolerance is None:
        return None
    if beta is not None and beta > vocabulary:
        raise AggdecError(f"--top-beta {beta}: the target dictionary has only {vocabulary} symbols")
    if beta == 1 or tolerance == 0:  # nothing but the verifier's own choice passes
        return None
    if beta == vocabulary:
        beta = None
    return TopBeta(beta, math.inf if tolerance is None else tolerance)


def values_of(symbols: Sequence[str]) -> Tensor:
    """The value of each symbol that is written in digits, V, fp32; NaN for the others."""
    digits = (symbol.isascii() and symbol.isdigit() for symbol in symbols)
    return torch.tensor([float(s) if is_number else math.nan for s, is_number in zip(symbols, digits, strict=True)])
