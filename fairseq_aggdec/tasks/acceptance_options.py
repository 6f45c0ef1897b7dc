"""Acceptance options of the modes `gad++`, `iad++` and `blockwise`."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_aggdec.decoding.verification import EXACT, Acceptance, Criterion, TopBeta, WithinDistance
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.generation.modes import MODES

HIGH_QUALITY = (3, 1.0)
"""top-beta and tolerance of papers/000's high-quality setting, the default of `gad++` and `iad++`"""


def check_acceptance_options(cfg: Any) -> None:
    """Raise `AggdecError` for a value that makes no sense."""
    check_least(cfg, 1, "top_beta")
    check_least(cfg, 0, "tolerance", "accept_distance", "min_block")
    if cfg.accept_distance is not None and not (cfg.top_beta is None and cfg.tolerance is None):
        raise AggdecError("--accept-distance does not go with --top-beta and --tolerance: give one criterion")


def acceptance_of(mode: str, cfg: Any, dictionary: Dictionary, most_committed: int) -> Acceptance:
    """The acceptance rule of a mode; raises `AggdecError` for a value that the vocabulary or the mode cannot honour."""
    if MODES[mode].acceptance != "criterion":
        return EXACT
    if cfg.min_block > most_committed:
        raise AggdecError(f"--min-block {cfg.min_block}: an iteration commits at most {most_committed} tokens here")
    return Acceptance(_criterion(mode, cfg, dictionary), max(1, cfg.min_block))


def _criterion(mode: str, cfg: Any, dictionary: Dictionary) -> Criterion | None:
    if cfg.accept_distance is not None:
        values = values_of(dictionary.symbols)
        if bool(values.isnan().all()):
            raise AggdecError("--accept-distance: the target dictionary has no numbers, which alone have distances")
        return WithinDistance(cfg.accept_distance, values)
    vocabulary = len(dictionary)
    beta, tolerance = cfg.top_beta, cfg.tolerance
    if not MODES[mode].is_lossless:
        beta = HIGH_QUALITY[0] if beta is None else beta
        tolerance = HIGH_QUALITY[1] if tolerance is None else tolerance
    elif beta is None and tolerance is None:
        return None
    if beta is not None and beta > vocabulary:
        raise AggdecError(f"--top-beta {beta}: the target dictionary has only {vocabulary} symbols")
    if beta == 1 or tolerance == 0:  # only the verifier's own choice passes
        return None
    if beta == vocabulary:
        beta = None
    return TopBeta(beta, math.inf if tolerance is None else tolerance)


def values_of(symbols: Sequence[str]) -> Tensor:
    """The value of each symbol, V, fp32; NaN for symbols that are not written in digits."""
    digits = (symbol.isascii() and symbol.isdigit() for symbol in symbols)
    return torch.tensor([float(s) if is_number else math.nan for s, is_number in zip(symbols, digits, strict=True)])
