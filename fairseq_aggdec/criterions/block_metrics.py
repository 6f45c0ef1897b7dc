"""Metrics of the criterions of block drafters and of proposal heads: losses, accuracy and acceptance of blocks."""

import math
from collections.abc import Sequence
from typing import Any

from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics
from torch import Tensor

from fairseq_aggdec.decoding.verification import accepted_prefix_length


class SummedCriterion(FairseqCriterion):
    """A criterion whose logs are sums, so that fairseq may add them up before it calls `reduce_metrics`."""

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log means over all workers and batches."""
        log_losses(logging_outputs)
        log_block_scores(logging_outputs)


def loss_sums(sample: dict[str, Any], loss: Tensor, nll: Tensor, supervised: float, sample_size: Any) -> dict[str, Any]:
    """The sums of a batch for fairseq and `log_losses`; `supervised`: the number of predicted tokens."""
    return {
        "loss": loss.detach(),
        "nll_loss": nll.detach(),
        "ntokens": supervised,
        "nsentences": len(sample["target"]),
        "sample_size": sample_size,
    }


def block_sums(passed: Tensor, right: Tensor, valid: Tensor, blocks: int) -> dict[str, Tensor | int]:
    """The sums of a batch of blocks for `log_block_scores`.

    Whether each of ... x k tokens would pass if all before it did, is the reference's, and has a target (`valid`).
    """
    sums: dict[str, Tensor | int] = {"_accepted": accepted_prefix_length(passed).sum(), "_blocks": blocks}
    for number in range(valid.size(-1)):
        sums[f"_correct_{number}"] = right[..., number].sum()
        sums[f"_valid_{number}"] = valid[..., number].sum()
    return sums


def log_losses(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log the mean `loss` and `nll_loss`, base 2, from the sums of all workers and batches."""
    sample_size, supervised = total(logging_outputs, "sample_size"), total(logging_outputs, "ntokens")
    loss, nll = total(logging_outputs, "loss"), total(logging_outputs, "nll_loss")
    metrics.log_scalar("loss", ratio(loss, sample_size) / math.log(2), sample_size, round=3)
    metrics.log_scalar("nll_loss", ratio(nll, supervised) / math.log(2), supervised, round=3)


def log_block_scores(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log acceptance and accuracy of blocks from the sums of `block_sums`, where there are any.

    `accepted` is the mean number of accepted tokens of a block; `acc_1`, `acc_2`, ... are accuracies by block position.
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
    """The sum of an entry over all workers and batches."""
    return sum(log.get(name, 0) for log in logging_outputs)


def ratio(numerator: Any, denominator: Any) -> float:
    """A ratio of numbers or one-element tensors; a denominator of 0 raises no error."""
    return float(numerator) / max(float(denominator), 1e-9)
