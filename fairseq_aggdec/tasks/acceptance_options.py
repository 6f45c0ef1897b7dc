"""Options of the modes that may accept more than the verifier's own choice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from fairseq_aggdec.decoding.verification import EXACT, Acceptance, Criterion, TopBeta, WithinDistance
from fairseq_aggdec.errors import AggdecError

HIGH_QUALITY = (3, 1.0)
"""top-beta and tolerance of papers/000's high-quality setting, the default of `gad++`"""


@dataclass
class AcceptanceOptions(FairseqDataclass):
    """For the command line and for hydra alike."""

    top_beta: Optional[int] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "gad++, blockwise: accept a drafted token among this many best ones of the verifier: beta of "
            "Ge et al. 2022, Eq. 8 (gad++: 3 unless given, and 5 in their high-efficiency setting; blockwise: 1)"
        },
    )
    tolerance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, blockwise: accept a drafted token whose log-probability falls short of the best one's by "
            "at most this: tau of Ge et al. 2022, Eq. 9 (gad++: 1.0 unless given, and 3.0 in their high-efficiency "
            "setting; blockwise: no limit)"
        },
    )
    eos_argmax: bool = field(
        default=False,
        metadata={"help": "gad++, blockwise: let a drafted end of sentence pass only where it is the verifier's best"},
    )
    accept_distance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, blockwise: for outputs that are numbers, such as intensities: accept a drafted number that "
            "differs from the verifier's by at most this"
        },
    )
    min_block: int = field(
        default=0,
        metadata={"help": "gad++, blockwise: commit at least this many tokens an iteration, good or not"},
    )


def check_acceptance_options(cfg: Any) -> None:
    """Refuse values without meaning.

    Args:
        cfg: the task's configuration.

    Raises:
        AggdecError: naming the option.
    """
    if cfg.top_beta is not None and cfg.top_beta < 1:
        raise AggdecError(
            f"--top-beta {cfg.top_beta}: must be at least 1, which accepts only the verifier's best token"
        )
    for name in ("tolerance", "accept_distance"):
        value = getattr(cfg, name)
        if value is not None and not value >= 0:
            raise AggdecError(
                f"--{name.replace('_', '-')} {value}: must be at least 0, which accepts only the verifier's best token"
            )
    if cfg.accept_distance is not None and not (cfg.top_beta is None and cfg.tolerance is None):
        raise AggdecError("--accept-distance does not go with --top-beta and --tolerance: give one criterion")
    if cfg.min_block < 0:
        raise AggdecError(f"--min-block {cfg.min_block}: give the number of tokens, or 0 for no minimum")


def acceptance_of(mode: str, cfg: Any, dictionary: Dictionary, longest: int) -> Acceptance:
    """The criterion by which a mode accepts drafted tokens.

    Args:
        mode: from `resolved_mode`.
        cfg: the task's configuration.
        dictionary: the target's.
        longest: the most tokens that an iteration can commit.

    Raises:
        AggdecError: --top-beta above the vocabulary, --accept-distance without numbers in it, --min-block above
            `longest`.
    """
    if mode not in ("gad++", "blockwise"):
        return EXACT
    if cfg.min_block > longest:
        raise AggdecError(f"--min-block {cfg.min_block}: an iteration commits at most {longest} tokens here")
    strict = (dictionary.eos(),) if cfg.eos_argmax else ()
    return Acceptance(_criterion(mode, cfg, dictionary), max(1, cfg.min_block), strict)


def _criterion(mode: str, cfg: Any, dictionary: Dictionary) -> Criterion | None:
    if cfg.accept_distance is not None:
        values = numbers(dictionary.symbols)
        if bool(values.isnan().all()):
            raise AggdecError("--accept-distance: the target dictionary has no numbers, which alone have distances")
        return WithinDistance(cfg.accept_distance, values)
    vocabulary = len(dictionary)
    beta, tolerance = cfg.top_beta, cfg.tolerance
    if mode == "gad++":
        beta, tolerance = (
            (HIGH_QUALITY[0] if beta is None else beta),
            (HIGH_QUALITY[1] if tolerance is None else tolerance),
        )
    elif beta is None and tolerance is None:
        return None
    beta = vocabulary if beta is None else beta
    if beta > vocabulary:
        raise AggdecError(f"--top-beta {beta}: the target dictionary has only {vocabulary} symbols")
    if beta == 1 or tolerance == 0:  # nothing but the verifier's own choice passes
        return None
    return TopBeta(beta, math.inf if tolerance is None else tolerance)


def numbers(symbols: Sequence[str]) -> Tensor:
    """The value of each symbol that is written in digits, V, fp32; NaN for the others."""
    digits = (symbol.isascii() and symbol.isdigit() for symbol in symbols)
    return torch.tensor([float(s) if is_number else math.nan for s, is_number in zip(symbols, digits, strict=True)])
