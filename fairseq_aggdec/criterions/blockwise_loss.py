"""The loss of proposal heads (papers/004 §6): cross-entropy of heads that are drawn for each batch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq import checkpoint_utils
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

    label_smoothing: float = field(default=0.1, metadata={"help": "probability spread over the other tokens"})
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
            "others, so that the model's own output changes less; 0: head 1 is drawn like any other"
        },
    )
    first_head_teacher: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "with --first-head-weight: head 1 learns the probabilities of this checkpoint, such as the base "
            "model, in place of the targets"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("blockwise_loss", dataclass=BlockwiseLossConfig)
class BlockwiseLoss(SummedCriterion):
    """In training the loss of heads drawn uniformly for each batch; in validation head 1's, and the accuracy of all.

    An identity head on a frozen base cannot be trained and is never drawn. With `first_head_weight` head 1 is in every
    batch, with its loss and its number of targets times that weight, and learns the distribution of the
    `first_head_teacher`, if any (not in the paper: self-distillation, as in Medusa-2, arXiv:2401.10774).
    """

    def __init__(self, cfg: BlockwiseLossConfig, task: Any) -> None:
        super().__init__(cfg, task)
        check_least(cfg, 1, "heads_per_step")
        check_least(cfg, 0, "first_head_weight")
        if cfg.first_head_teacher and not cfg.first_head_weight:
            raise AggdecError(f"--first-head-teacher {cfg.first_head_teacher} needs --first-head-weight")
        self._teacher: list[Any] = []  # the model, loaded at first use; in a list, so that it is not trained nor saved

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """The summed loss, the number to divide it by, and sums for the log.

        The model may be wrapped for distributed training; `reduce` is not used.

        Raises:
            AggdecError: the model has no heads; an option is about head 1, and it cannot be trained; or its teacher
                cannot be read.
        """
        layer = getattr(getattr(model, "decoder", None), "heads", None)
        if layer is None:
            raise AggdecError("--criterion blockwise_loss needs --arch blockwise_transformer")
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
        wanted, targets = [], {}
        for head in [*weights, *map(drawable.__getitem__, drawn)]:
            target = targets_of_head(sample["target"], head, self.padding_idx)
            mask = target.ne(self.padding_idx)
            wanted.append((head, mask))
            targets[head] = target[mask]

        taught = self._taught(sample, model) if self.cfg.first_head_teacher else None

        def loss_of(head: int, logits: Tensor) -> tuple[Tensor, Tensor]:
            if head == 1 and taught is not None:
                loss, nll = taught_loss(logits, taught, targets[head])
            else:
                loss, nll = smoothed_loss(logits, targets[head], self.cfg.label_smoothing)
            return weights.get(head, 1) * loss, weights.get(head, 1) * nll

        losses = model(**sample["net_input"], heads=wanted, per_head=loss_of)
        loss, nll = (torch.stack(parts).sum() for parts in zip(*losses, strict=True))
        # distributed training needs a gradient of every weight, also where only an identity head was drawn
        loss = loss + 0.0 * sum(weight.flatten()[0] for weight in layer.parameters())
        return self.summed(sample, loss, nll, sum(weights.get(head, 1) * len(targets[head]) for head in targets))

    @torch.no_grad()
    def _taught(self, sample: dict[str, Any], model: Any) -> Tensor:
        """The teacher's logits at head 1's N targets, N x V, on the device of the trained model."""
        if not self._teacher:  # loaded at first use: validation does not need the file
            path = str(self.cfg.first_head_teacher)
            if not Path(path).is_file():
                raise AggdecError(f"--first-head-teacher {path}: no such file")
            self._teacher = checkpoint_utils.load_model_ensemble([path], task=self.task)[0]
        (teacher,), like = self._teacher, next(model.parameters())
        teacher = teacher.eval().to(device=like.device, dtype=like.dtype)
        return teacher(**sample["net_input"])[0][sample["target"].ne(self.padding_idx)]

    def _validate(self, model: Any, sample: dict[str, Any], heads: int) -> tuple[Tensor, int, dict[str, Any]]:
        targets = [targets_of_head(sample["target"], head, self.padding_idx) for head in range(1, heads + 1)]
        masks = [target.ne(self.padding_idx) for target in targets]
        predicted = torch.full((heads, *targets[0].shape), self.padding_idx, device=targets[0].device)
        first: list[tuple[Tensor, Tensor]] = []

        def predict(head: int, logits: Tensor) -> None:
            if head == 1:
                first.append(smoothed_loss(logits, targets[0][masks[0]], self.cfg.label_smoothing))
            predicted[head - 1][masks[head - 1]] = logits.max(dim=-1).indices

        model(**sample["net_input"], heads=list(enumerate(masks, start=1)), per_head=predict)
        loss, sample_size, log = self.summed(sample, *first[0], int(masks[0].sum()))
        log.update(block_scores(predicted, torch.stack(targets), self.padding_idx))
        return loss, sample_size, log


def taught_loss(logits: Tensor, taught: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy against a teacher's distribution, and the negative log-likelihood of the targets, both summed.

    `logits`, `taught`: N x V, the model's and the teacher's; `targets`: N.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    nll = -log_probs.detach().gather(1, targets[:, None]).sum()
    return -(taught.float().softmax(dim=-1) * log_probs).sum(), nll


def targets_of_head(target: Tensor, head: int, pad: int) -> Tensor:
    """The targets of a head from 1 to k: the target tokens shifted left by `head` - 1, B x W, then padding."""
    shift = min(head - 1, target.size(1))
    shifted = torch.cat([target[:, shift:], target.new_full((target.size(0), shift), pad)], dim=1)
    return shifted.masked_fill(target.eq(pad), pad)


def block_scores(predicted: Tensor, targets: Tensor, pad: int) -> dict[str, Tensor | int]:
    """`block_sums` of the heads' predictions, with a block at each position.

    A block is accepted as in decoding, but with the reference as context: head 1's token, then the tokens of the other
    heads as long as head 1 predicts the same token at its own position.

    `predicted` and `targets`: k x B x W, of each head at each position; padding where there is nothing to predict.
    """
    valid = targets.ne(pad)
    confirmed = [
        predicted[head] == targets_of_head(predicted[0].masked_fill(~valid[0], pad), head + 1, pad)
        for head in range(len(predicted))
    ]
    by_position = valid.permute(1, 2, 0)  # B x W x k
    passed = torch.stack(confirmed, dim=-1) & by_position  # head 1 confirms itself
    right = predicted.eq(targets).permute(1, 2, 0) & by_position
    return block_sums(passed, right, by_position, int(valid[0].sum()))
