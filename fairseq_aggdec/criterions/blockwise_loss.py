"""The loss of proposal heads (papers/004 §6): cross-entropy of heads that are drawn for each batch."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor

from fairseq_aggdec.criterions.block_metrics import SummedCriterion, block_sums
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.models.blockwise_transformer import trainable_heads


@dataclass
class BlockwiseLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(
        default=0.1, metadata={"help": "probability spread over the other tokens"}
    )
    heads_per_step: int = field(
        default=1,
        metadata={
            "help": "number of heads drawn for each batch; with all of them the loss is the mean over their targets"
        },
    )
    first_head_weight: float = field(
        default=0.0,
        metadata={
            "help": "weight of the loss of head 1, which is then trained in every batch beside --heads-per-step "
            "others, so that the model's output changes less; 0: head 1 is drawn like any other"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("blockwise_loss", dataclass=BlockwiseLossConfig)
class BlockwiseLoss(SummedCriterion):
    """In training the loss of heads drawn uniformly for each batch; in validation head 1's, and the accuracy of all.

    An identity head on a frozen base cannot be trained and is never drawn. With `first_head_weight` head 1 is in every
    batch, with its loss and its number of targets times that weight (not in the paper).
    """

    def __init__(self, cfg: BlockwiseLossConfig, task: Any) -> None:
        super().__init__(cfg, task)
        check_least(cfg, 1, "heads_per_step")
        check_least(cfg, 0, "first_head_weight")

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """The summed loss, the number to divide it by, and sums for the log.

        The model may be wrapped for distributed training; `reduce` is not used.

        Raises:
            AggdecError: the model has no heads; or an option is about head 1, and it cannot be trained.
        """
        layer = getattr(getattr(model, "decoder", None), "heads", None)
        if layer is None:
            raise AggdecError(
                "--criterion blockwise_loss needs --arch blockwise_transformer"
            )
        if not model.training:
            return self._validate(model, sample, layer.heads)
        candidates = list(trainable_heads(layer, model.base_is_frozen))
        weights = {1: self.cfg.first_head_weight} if self.cfg.first_head_weight else {}
        if weights and candidates[0] != 1:
            raise AggdecError(
                "--first-head-weight: head 1 is the output of the frozen base (--freeze-base) and learns nothing; "
                "leave out one of the two options"
            )
        drawable = candidates[len(weights) :]
        # drawn on the host: fairseq seeds its random state by the update, so a resumed run draws the same heads
        drawn = torch.randperm(len(drawable))[: self.cfg.heads_per_step].tolist()
        wanted: list[tuple[int, Tensor]] = []
        targets: dict[int, Tensor] = {}
        for head in [*weights, *map(drawable.__getitem__, drawn)]:
            target = targets_of_head(sample["target"], head, self.padding_idx)
            mask = target.ne(self.padding_idx)
            wanted.append((head, mask))
            targets[head] = target[mask]

        def loss_of(head: int, logits: Tensor) -> tuple[Tensor, Tensor]:
            loss, nll = smoothed_loss(logits, targets[head], self.cfg.label_smoothing)
            return weights.get(head, 1) * loss, weights.get(head, 1) * nll

        losses = model(**sample["net_input"], heads=wanted, per_head=loss_of)
        loss, nll = (torch.stack(parts).sum() for parts in zip(*losses, strict=True))
        # distributed training needs a gradient of every weight, also where only an identity head was drawn
        loss = loss + 0.0 * sum(weight.flatten()[0] for weight in layer.parameters())
        return self.summed(
            sample,
            loss,
            nll,
            sum(weights.get(head, 1) * len(targets[head]) for head in targets),
        )

    def _validate(
        self, model: Any, sample: dict[str, Any], heads: int
    ) -> tuple[Tensor, int, dict[str, Any]]:
        # what each head has to predict, and where
        targets = [
            targets_of_head(sample["target"], head, self.padding_idx)
            for head in range(1, heads + 1)
        ]
        masks = [target.ne(self.padding_idx) for target in targets]
        # one pass: head 1's loss, and every head's best tokens
        predicted = torch.full(
            (heads, *targets[0].shape), self.padding_idx, device=targets[0].device
        )
        first: list[tuple[Tensor, Tensor]] = []

        def predict(head: int, logits: Tensor) -> None:
            if head == 1:
                first.append(
                    smoothed_loss(
                        logits, targets[0][masks[0]], self.cfg.label_smoothing
                    )
                )
            predicted[head - 1][masks[head - 1]] = logits.max(dim=-1).indices

        model(
            **sample["net_input"],
            heads=list(enumerate(masks, start=1)),
            per_head=predict,
        )
        loss, sample_size, log = self.summed(sample, *first[0], int(masks[0].sum()))
        log.update(block_scores(predicted, torch.stack(targets), self.padding_idx))
        return loss, sample_size, log


def targets_of_head(target: Tensor, head: int, pad: int) -> Tensor:
    """The targets of a head from 1 to k: the target tokens shifted left by `head` - 1, B x W, then padding."""
    shift = min(head - 1, target.size(1))
    shifted = torch.cat(
        [target[:, shift:], target.new_full((target.size(0), shift), pad)], dim=1
    )
    return shifted.masked_fill(target.eq(pad), pad)


def block_scores(
    predicted: Tensor, targets: Tensor, pad: int
) -> dict[str, Tensor | int]:
    """`block_sums` of the heads' predictions, with a block at each position.

    A block is accepted as in decoding, but with the reference as context: head 1's token, then the tokens of the other
    heads as long as head 1 predicts the same token at its own position.

    `predicted` and `targets`: k x B x W, of each head at each position; padding where there is nothing to predict.
    """
    valid = targets.ne(pad)
    confirmed = [
        predicted[head]
        == targets_of_head(predicted[0].masked_fill(~valid[0], pad), head + 1, pad)
        for head in range(len(predicted))
    ]
    by_position = valid.permute(1, 2, 0)  # B x W x k
    passed = torch.stack(confirmed, dim=-1) & by_position  # head 1 confirms itself
    right = predicted.eq(targets).permute(1, 2, 0) & by_position
    return block_sums(passed, right, by_position, int(valid[0].sum()))
