"""Which draft tokens a mode accepts, by its options."""

import math
from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_aggdec.decoding.verification import (
    EXACT,
    Acceptance,
    Criterion,
    TopBeta,
    WithinDistance,
)
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import Decoding


def acceptance_of(
    decoding: Decoding, dictionary: Dictionary, most_committed: int
) -> Acceptance:
    """The acceptance rule; raises `AggdecError` for a value that the vocabulary or the drafts cannot honour.

    `dictionary`: the target's; `most_committed`: the most tokens that an iteration commits.
    """
    if decoding.row.acceptance != "criterion":
        return EXACT
    if decoding.min_block > most_committed:
        raise AggdecError(
            f"--min-block {decoding.min_block}: an iteration commits at most {most_committed} tokens here"
        )
    return Acceptance(_criterion(decoding, dictionary), max(1, decoding.min_block))


def _criterion(decoding: Decoding, dictionary: Dictionary) -> Criterion | None:
    if decoding.accept_distance is not None:
        values = values_of(dictionary.symbols)
        if bool(values.isnan().all()):
            raise AggdecError(
                "--accept-distance: the target dictionary has no numbers, which alone have distances"
            )
        return WithinDistance(decoding.accept_distance, values)
    beta, tolerance = decoding.criterion
    if beta is not None and beta > len(dictionary):
        raise AggdecError(
            f"--top-beta {beta}: the target dictionary has only {len(dictionary)} symbols"
        )
    if not decoding.accepts_others:
        return None
    return TopBeta(beta, math.inf if tolerance is None else tolerance)


def values_of(symbols: Sequence[str]) -> Tensor:
    """The value of each symbol, V, fp32; NaN for symbols that are not written in digits."""
    values = []
    for symbol in symbols:
        values.append(
            float(symbol) if symbol.isascii() and symbol.isdigit() else math.nan
        )
    return torch.tensor(values)
