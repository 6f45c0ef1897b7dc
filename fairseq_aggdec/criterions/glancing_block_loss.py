"""Cross-entropy of a drafter's blocks (papers/000 §3.2.1), with glancing in training and acceptance in validation."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from fairseq_aggdec.criterions.block_metrics import log_block_scores, log_losses, ratio, total
from fairseq_aggdec.criterions.glancing import GlancingSchedule, revealed_positions, uniform_noise
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.decoding.verification import accepted_prefix_length
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.block_sampling import Blocks, blocks_at


@dataclass
class GlancingBlockLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(default=0.1, metadata={"help": "probability spread over the other tokens"})
    glancing: str = field(
        default="0.5:0.3",
        metadata={"help": "lambda of glancing, START:END over the training or one number; 0 switches it off"},
    )
    glancing_updates: int = field(
        default=0, metadata={"help": "updates over which lambda goes from START to END; 0: --max-update"}
    )
    position_decay: float = field(
        default=1.0,
        metadata={
            "help": "weight of each block position relative to the one before it: below 1 the first tokens of a block, "
            "without which later ones are never accepted, count more"
        },
    )
    max_update: int = II("optimization.max_update")
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("glancing_block_loss", dataclass=GlancingBlockLossConfig)
class GlancingBlockLoss(FairseqCriterion):
    """L_NAR of papers/000 §3.2.1: unrevealed block positions that have a target."""

    def __init__(
        self,
        task: Any,
        label_smoothing: float,
        glancing: str,
        glancing_updates: int,
        max_update: int,
        sentence_avg: bool,
        position_decay: float = 1.0,
    ) -> None:
        super().__init__(task)
        self.label_smoothing = label_smoothing
        if not 0 < position_decay <= 1:
            raise AggdecError(f"--position-decay {position_decay}: give a number above 0, at most 1")
        self.position_decay = position_decay
        self.schedule = GlancingSchedule.parse(str(glancing), glancing_updates or max_update)
        self.sentence_avg = sentence_avg

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """Returns the summed loss, the number it is to be divided by, and sums for the log.

        Args:
            model: a drafter, possibly wrapped for distributed training.
            sample: a batch in which the task `block_drafting` has put `prefix_lengths` (B x R) and `update_num`.
            reduce: fairseq's; the loss is summed in any case.

        Raises:
            AggdecError: the batch comes from another task.
        """
        if "prefix_lengths" not in sample:
            raise AggdecError("--criterion glancing_block_loss needs --task block_drafting")
        blocks = blocks_at(sample["target"], sample["prefix_lengths"], model.block_size, self.padding_idx)
        logits, trained = model(
            **sample["net_input"], blocks=blocks, reveal=self._reveal(blocks, sample, model.training)
        )
        targets = blocks.targets[trained]
        weights = self._weights(trained)
        loss, nll = smoothed_loss(logits, targets, self.label_smoothing, weights)
        supervised = targets.numel()
        sample_size: Tensor | int = supervised if weights is None else weights.sum()
        if self.sentence_avg:
            sample_size = len(sample["target"])
        log: dict[str, Any] = {
            "loss": loss.detach(),
            "nll_loss": nll.detach(),
            "ntokens": supervised,
            "nsentences": len(sample["target"]),
            "sample_size": sample_size,
        }
        if model.training:
            log.update(_positions=blocks.valid.sum(), _lambda=self._ratio(sample) * supervised)
        else:
            log.update(acceptance(model.best_tokens(logits.detach()), blocks))
        return loss, sample_size, log

    def _weights(self, trained: Tensor) -> Tensor | None:
        """Of each trained position, in order (N)."""
        if self.position_decay == 1:
            return None
        steps = torch.arange(trained.size(-1), device=trained.device)
        return (self.position_decay**steps).expand(trained.shape)[trained]

    def _ratio(self, sample: dict[str, Any]) -> float:
        return self.schedule.ratio(sample["update_num"])

    def _reveal(self, blocks: Blocks, sample: dict[str, Any], training: bool) -> Any:
        """What the model calls between the two passes, or None where one pass is enough."""
        if not training or self.schedule.is_off:
            return None
        noise = uniform_noise(blocks.targets)  # drawn here: both passes must find the same random state
        ratio = self._ratio(sample)
        return lambda predicted: revealed_positions(predicted, blocks.targets, blocks.valid, noise, ratio)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log means over all workers and batches."""
        log_losses(logging_outputs)
        supervised, positions = total(logging_outputs, "ntokens"), total(logging_outputs, "_positions")
        if positions > 0:
            metrics.log_scalar("glanced", 1 - ratio(supervised, positions), positions, round=3)
            metrics.log_scalar("lambda", ratio(total(logging_outputs, "_lambda"), supervised), supervised, round=3)
        log_block_scores(logging_outputs)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def acceptance(predicted: Tensor, blocks: Blocks) -> dict[str, Tensor | int]:
    """Sums that tell how good the drafts are, all against the reference.

    Args:
        predicted: one token for each valid position, in order.
        blocks: the blocks.

    Returns:
        `_accepted`: leading right tokens, of `_blocks` blocks; `_correct_I`: right tokens at block position I (from 0),
        of `_valid_I`.
    """
    correct = torch.zeros_like(blocks.valid)
    correct[blocks.valid] = predicted.eq(blocks.targets[blocks.valid])
    sums: dict[str, Tensor | int] = {
        "_accepted": accepted_prefix_length(correct).sum(),
        "_blocks": blocks.prefix_lengths.numel(),
    }
    for number in range(correct.size(-1)):
        sums[f"_correct_{number}"] = correct[..., number].sum()
        sums[f"_valid_{number}"] = blocks.valid[..., number].sum()
    return sums
