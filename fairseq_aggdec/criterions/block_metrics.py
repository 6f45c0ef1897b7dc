"""Metrics of the criterions of block drafters and of proposal heads: losses, accuracy and acceptance of blocks."""

import math
from collections.abc import Sequence
from typing import Any

from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics
from torch import Tensor

from fairseq_aggdec.decoding.verification import accepted_prefix_length

Logs = Sequence[dict[str, Any]]
"""sums of all workers and batches"""


class SummedCriterion(FairseqCriterion):
    """A criterion whose logs are sums, so that fairseq may add them up before it calls `reduce_metrics`."""

    def __init__(self, cfg: Any, task: Any) -> None:
        super().__init__(task)
        self.cfg = cfg

    def summed(
        self,
        sample: dict[str, Any],
        loss: Tensor,
        nll: Tensor,
        supervised: float,
        weight: Any = None,
    ) -> tuple[Tensor, Any, dict[str, Any]]:
        """What `forward` returns: the summed loss, the number to divide it by, and sums for the log.

        `supervised`: the number of predicted tokens; `weight`: the sum of their weights; None: each has 1.
        """
        size = supervised if weight is None else weight
        log = {"loss": loss.detach(), "nll_loss": nll.detach(), "ntokens": supervised}
        log |= {"nsentences": len(sample["target"]), "sample_size": size}
        if self.cfg.sentence_avg:
            log["sample_size"] = len(sample["target"])
        return loss, log["sample_size"], log

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log means over all workers and batches: losses in bits, and the sums of `block_sums`, where there are any.

        `accepted` is the mean number of accepted tokens of a block; `acc_1`, `acc_2`, ... are accuracies by block
        position.
        """
        log_mean(logging_outputs, "loss", "loss", "sample_size", math.log(2))
        log_mean(logging_outputs, "nll_loss", "nll_loss", "ntokens", math.log(2))
        if total(logging_outputs, "_blocks") > 0:
            log_mean(logging_outputs, "accepted", "_accepted", "_blocks")
        number = 0
        while any(f"_valid_{number}" in log for log in logging_outputs):
            if total(logging_outputs, f"_valid_{number}") > 0:
                log_mean(
                    logging_outputs,
                    f"acc_{number + 1}",
                    f"_correct_{number}",
                    f"_valid_{number}",
                )
            number += 1


def block_sums(
    passed: Tensor, right: Tensor, valid: Tensor, blocks: int
) -> dict[str, Tensor | int]:
    """The sums of a batch of blocks for `reduce_metrics`.

    Whether each of ... x k tokens would pass if all before it did, is the reference's, and has a target (`valid`).
    """
    sums: dict[str, Tensor | int] = {
        "_accepted": accepted_prefix_length(passed).sum(),
        "_blocks": blocks,
    }
    for number in range(valid.size(-1)):
        sums[f"_correct_{number}"] = right[..., number].sum()
        sums[f"_valid_{number}"] = valid[..., number].sum()
    return sums


def total(logs: Logs, name: str) -> float:
    """The sum of an entry over all workers and batches."""
    return float(sum(log.get(name, 0) for log in logs))


def log_mean(logs: Logs, name: str, of: str, per: str, unit: float = 1.0) -> None:
    """Log a mean, the quotient of two sums, in a unit; without anything to divide by it is 0 and has no weight."""
    count = total(logs, per)
    metrics.log_scalar(name, total(logs, of) / max(count, 1e-9) / unit, count, round=3)
