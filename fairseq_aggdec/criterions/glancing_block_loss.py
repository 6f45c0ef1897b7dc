"""The loss of block drafters (papers/000 §3.2.1): cross-entropy, with glancing; validation logs acceptance.

Glancing: the worse a drafter's first draft, the more of the reference it sees in training. A first pass without
gradients drafts every block. In a block with H wrong tokens N = floor(lambda * H) positions, drawn uniformly among
those with a target, then show the reference's token in place of the mask; the second pass is trained on the others.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from fairseq_aggdec.criterions.block_metrics import (
    SummedCriterion,
    block_sums,
    log_mean,
    total,
)
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import Blocks, blocks_at


@dataclass
class GlancingBlockLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(
        default=0.1, metadata={"help": "probability spread over the other tokens"}
    )
    glancing: str = field(
        default="0.5:0.3",
        metadata={
            "help": "lambda of glancing: one number, or START:END over the training; 0 switches it off"
        },
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


@dataclass(frozen=True)
class GlancingSchedule:
    """lambda, linear from `start` to `end` over `updates` updates, constant afterwards."""

    start: float
    end: float
    updates: int

    @classmethod
    def parse(cls, text: str, updates: int) -> "GlancingSchedule":
        """Parse the value of --glancing: `START:END`, or one number for a constant; 0 switches glancing off.

        Raises `AggdecError` where lambda is not from 0 to 1, or changes over an unknown number of updates.
        """
        match = re.fullmatch(r"(\d*\.?\d+)(?::(\d*\.?\d+))?", text.strip())
        start, end = (
            (float(match[1]), float(match[2] or match[1])) if match else (-1.0, -1.0)
        )
        if not (0 <= start <= 1 and 0 <= end <= 1):
            raise AggdecError(
                f"--glancing {text}: give lambda from 0 to 1, or START:END such as 0.5:0.3"
            )
        if start != end and updates <= 0:
            raise AggdecError(
                f"--glancing {text} changes over the training, whose length is unknown: give --max-update"
            )
        return cls(start, end, updates)

    def ratio(self, update: int) -> float:
        """Lambda at an update, counted from 0."""
        if self.start == self.end:
            return self.start
        return self.start + (self.end - self.start) * min(1.0, update / self.updates)

    @property
    def is_off(self) -> bool:
        """Whether lambda is always 0, so that the first pass is not needed."""
        return self.start == self.end == 0


@register_criterion("glancing_block_loss", dataclass=GlancingBlockLossConfig)
class GlancingBlockLoss(SummedCriterion):
    """L_NAR of papers/000 §3.2.1 over block positions that have a target and are not revealed."""

    def __init__(self, cfg: GlancingBlockLossConfig, task: Any) -> None:
        super().__init__(cfg, task)
        if not 0 < cfg.position_decay <= 1:
            raise AggdecError(
                f"--position-decay {cfg.position_decay}: give a number above 0, at most 1"
            )
        self.schedule = GlancingSchedule.parse(str(cfg.glancing), cfg.max_update)

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """The summed loss, the number to divide it by, and sums for the log.

        The drafter may be wrapped for distributed training; the batch is one of the task `block_drafting`, with
        `prefix_lengths` (B x R) and `update_num`; `reduce` is not used.

        Raises `AggdecError` where the batch comes from another task.
        """
        if "prefix_lengths" not in sample:
            raise AggdecError(
                "--criterion glancing_block_loss needs --task block_drafting"
            )
        blocks = blocks_at(
            sample["target"],
            sample["prefix_lengths"],
            model.block_size,
            self.padding_idx,
        )
        # both passes; the second one's logits at the positions that are not revealed
        logits, trained = model(
            **sample["net_input"],
            blocks=blocks,
            reveal=self._reveal(blocks, sample, model.training),
        )
        # the loss, and what is logged
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
        return lambda predicted: revealed_positions(
            predicted, blocks.targets, blocks.valid, noise, ratio
        )

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Also log the share of positions that were revealed, and lambda."""
        super().reduce_metrics(logging_outputs)
        positions = total(logging_outputs, "_positions")
        if positions > 0:
            shown = 1 - total(logging_outputs, "ntokens") / positions
            metrics.log_scalar("glanced", shown, positions, round=3)
            log_mean(logging_outputs, "lambda", "_lambda", "ntokens")


def revealed_positions(
    predicted: Tensor, targets: Tensor, valid: Tensor, noise: Tensor, ratio: float
) -> Tensor:
    """The positions that show the reference's token in the second pass: floor(`ratio` * Hamming distance) in a block.

    `predicted` and `targets`: tokens; `valid`: whether there is a target; `noise`: random numbers that order positions.
    All have the shape of the result, B x R x k.
    """
    distance = (predicted.ne(targets) & valid).sum(-1, keepdim=True)  # B x R x 1
    count = (distance * ratio).floor()
    order = noise.masked_fill(~valid, 2.0).argsort(dim=-1)
    # B x R x k, rank in the random order; positions without a target come last
    rank = order.argsort(dim=-1)
    return rank < count


def acceptance(predicted: Tensor, blocks: Blocks) -> dict[str, Tensor | int]:
    """`block_sums` of drafts against the reference; `predicted`: the tokens of all valid positions in order."""
    correct = torch.zeros_like(blocks.valid)
    correct[blocks.valid] = predicted.eq(blocks.targets[blocks.valid])
    return block_sums(correct, correct, blocks.valid, blocks.prefix_lengths.numel())
