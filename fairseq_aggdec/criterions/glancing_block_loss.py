"""The loss of block drafters (papers/000 §3.2.1): cross-entropy, with glancing; validation logs acceptance."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from fairseq_aggdec.criterions.block_metrics import SummedCriterion, block_sums, log_mean, total
from fairseq_aggdec.criterions.glancing import GlancingSchedule, revealed_positions
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import Blocks, blocks_at


@dataclass
class GlancingBlockLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(default=0.1, metadata={"help": "probability spread over the other tokens"})
    glancing: str = field(
        default="0.5:0.3",
        metadata={"help": "lambda of glancing: one number, or START:END over the training; 0 switches it off"},
    )
    glancing_updates: int = field(
        default=0, metadata={"help": "updates over which lambda goes from START to END; 0: --max-update"}
    )
    position_decay: float = field(
        default=1.0,
        metadata={
            "help": "weight of each block position relative to the one before it; below 1 the first tokens of a block "
            "count more, on which the acceptance of later ones depends"
        },
    )
    max_update: int = II("optimization.max_update")
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("glancing_block_loss", dataclass=GlancingBlockLossConfig)
class GlancingBlockLoss(SummedCriterion):
    """L_NAR of papers/000 §3.2.1 over block positions that have a target and are not revealed."""

    def __init__(self, cfg: GlancingBlockLossConfig, task: Any) -> None:
        super().__init__(cfg, task)
        if not 0 < cfg.position_decay <= 1:
            raise AggdecError(f"--position-decay {cfg.position_decay}: give a number above 0, at most 1")
        self.schedule = GlancingSchedule.parse(str(cfg.glancing), cfg.glancing_updates or cfg.max_update)

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """The summed loss, the number to divide it by, and sums for the log.

        The drafter may be wrapped for distributed training; the batch is one of the task `block_drafting`, with
        `prefix_lengths` (B x R) and `update_num`; `reduce` is not used.

        Raises `AggdecError` where the batch comes from another task.
        """
        if "prefix_lengths" not in sample:
            raise AggdecError("--criterion glancing_block_loss needs --task block_drafting")
        blocks = blocks_at(sample["target"], sample["prefix_lengths"], model.block_size, self.padding_idx)
        logits, trained = model(
            **sample["net_input"], blocks=blocks, reveal=self._reveal(blocks, sample, model.training)
        )
        targets = blocks.targets[trained]
        weights = self._weights(trained)
        loss, nll = smoothed_loss(logits, targets, self.cfg.label_smoothing, weights)
        weight = None if weights is None else weights.sum()
        loss, sample_size, log = self.summed(sample, loss, nll, targets.numel(), weight)
        if model.training:
            share = self.schedule.ratio(sample["update_num"])
            log.update(_positions=blocks.valid.sum(), _lambda=share * targets.numel())
        else:
            log.update(acceptance(model.decoder.best_tokens(logits.detach()), blocks))
        return loss, sample_size, log

    def _weights(self, trained: Tensor) -> Tensor | None:
        """The weight of each trained position, in order, N; None where all are 1."""
        if self.cfg.position_decay == 1:
            return None
        steps = torch.arange(trained.size(-1), device=trained.device)
        return (self.cfg.position_decay**steps).expand(trained.shape)[trained]

    def _reveal(self, blocks: Blocks, sample: dict[str, Any], training: bool) -> Any:
        """The model's argument `reveal`, called between the two passes; None: there is one pass."""
        if not training or self.schedule.is_off:
            return None
        # drawn before both passes, which need the same random state
        noise = torch.rand(blocks.targets.shape, device=blocks.targets.device)
        ratio = self.schedule.ratio(sample["update_num"])
        return lambda predicted: revealed_positions(predicted, blocks.targets, blocks.valid, noise, ratio)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Also log the share of positions that were revealed, and lambda."""
        super().reduce_metrics(logging_outputs)
        positions = total(logging_outputs, "_positions")
        if positions > 0:
            shown = 1 - total(logging_outputs, "ntokens") / positions
            metrics.log_scalar("glanced", shown, positions, round=3)
            log_mean(logging_outputs, "lambda", "_lambda", "ntokens")


def acceptance(predicted: Tensor, blocks: Blocks) -> dict[str, Tensor | int]:
    """`block_sums` of drafts against the reference; `predicted`: the tokens of all valid positions in order."""
    correct = torch.zeros_like(blocks.valid)
    correct[blocks.valid] = predicted.eq(blocks.targets[blocks.valid])
    return block_sums(correct, correct, blocks.valid, blocks.prefix_lengths.numel())
