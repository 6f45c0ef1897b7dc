"""What the criterions of drafters and of proposal heads log alike."""

import math
from collections.abc import Sequence
from typing import Any

from fairseq.logging import metrics


def log_losses(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log the mean `loss` and `nll_loss`, base 2, from the sums of all workers and batches."""
    sample_size, supervised = total(logging_outputs, "sample_size"), total(logging_outputs, "ntokens")
    loss, nll = total(logging_outputs, "loss"), total(logging_outputs, "nll_loss")
    metrics.log_scalar("loss", ratio(loss, sample_size) / math.log(2), sample_size, round=3)
    metrics.log_scalar("nll_loss", ratio(nll, supervised) / math.log(2), supervised, round=3)


def log_block_scores(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log how good blocks are, where that was measured.

    Args:
        logging_outputs: with `_accepted` tokens of `_blocks` blocks, logged as `accepted`, their mean; and with
            `_correct_I` of `_valid_I` tokens at block position I (from 0), logged as `acc_1`, `acc_2`, ...
    """
    blocks = total(logging_outputs, "_blocks")
    if blocks <= 0:
        return
    metrics.log_scalar("accepted", ratio(total(logging_outputs, "_accepted"), blocks), blocks, round=3)
    number = 0
    while any(f"_valid_{number}" in log for log in logging_outputs):
        valid = total(logging_outputs, f"_valid_{number}")
        if valid > 0:
            accuracy = ratio(total(logging_outputs, f"_correct_{number}"), valid)
            metrics.log_scalar(f"acc_{number + 1}", accuracy, valid, round=3)
        number += 1


def total(logging_outputs: Sequence[dict[str, Any]], name: str) -> Any:
    """A sum over all workers and batches."""
    return sum(log.get(name, 0) for log in logging_outputs)


def ratio(numerator: Any, denominator: Any) -> float:
    """Numbers or tensors of one; a denominator of zero gives a huge number rather than an error."""
    return float(numerator) / max(float(denominator), 1e-9)
