"""Cross-entropy of the heads of blockwise parallel decoding (papers/004 §6)."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor

from fairseq_aggdec.criterions.block_metrics import log_block_scores, log_losses
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.decoding.verification import accepted_prefix_length
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.proposal_heads import trainable_heads


@dataclass
class BlockwiseLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(default=0.1, metadata={"help": "probability spread over the other tokens"})
    heads_per_step: int = field(
        default=1, metadata={"help": "heads drawn for each batch; all of them give the exact mean of their losses"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("blockwise_loss", dataclass=BlockwiseLossConfig)
class BlockwiseLoss(FairseqCriterion):
    """In training the loss of heads drawn uniformly for each batch; in validation head 1's, and how well all do.

    A head that cannot learn, the identity on a frozen base, is never drawn.
    """

    def __init__(self, task: Any, label_smoothing: float, heads_per_step: int, sentence_avg: bool) -> None:
        super().__init__(task)
        if heads_per_step < 1:
            raise AggdecError(f"--heads-per-step {heads_per_step}: give at least 1")
        self.label_smoothing = label_smoothing
        self.heads_per_step = heads_per_step
        self.sentence_avg = sentence_avg

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """Returns the summed loss, the number it is to be divided by, and sums for the log.

        Args:
            model: a `BlockwiseTransformerModel`, possibly wrapped for distributed training.
            sample: a batch of any task with targets.
            reduce: fairseq's; the loss is summed in any case.

        Raises:
            AggdecError: another model.
        """
        layer = getattr(getattr(model, "decoder", None), "heads", None)
        if layer is None:
            raise AggdecError("--criterion blockwise_loss needs --arch blockwise_transformer")
        if not model.training:
            return self._validate(model, sample, layer.heads)
        candidates = trainable_heads(layer, model.base_is_frozen)
        # on the host, from the random state that fairseq sets for each update: a resumed run repeats it
        drawn = torch.randperm(len(candidates))[: self.heads_per_step].tolist()
        wanted, targets = [], {}
        for head in map(candidates.__getitem__, drawn):
            target = targets_of_head(sample["target"], head, self.padding_idx)
            mask = target.ne(self.padding_idx)
            wanted.append((head, mask))
            targets[head] = target[mask]

        def take(head: int, logits: Tensor) -> tuple[Tensor, Tensor]:
            return smoothed_loss(logits, targets[head], self.label_smoothing)

        losses = model(**sample["net_input"], heads=wanted, take=take)
        loss, nll = (torch.stack(parts).sum() for parts in zip(*losses, strict=True))
        # several processes wait for a gradient of every weight, and an identity head that is drawn alone uses no head's
        loss = loss + 0.0 * sum(weight.sum() for weight in layer.parameters())
        return self._result(sample, loss, nll, sum(target.numel() for target in targets.values()))

    def _validate(self, model: Any, sample: dict[str, Any], heads: int) -> tuple[Tensor, int, dict[str, Any]]:
        targets = [targets_of_head(sample["target"], head, self.padding_idx) for head in range(1, heads + 1)]
        masks = [target.ne(self.padding_idx) for target in targets]
        predicted = torch.full((heads, *targets[0].shape), self.padding_idx, device=targets[0].device)
        first: list[tuple[Tensor, Tensor]] = []

        def take(head: int, logits: Tensor) -> None:
            if head == 1:
                first.append(smoothed_loss(logits, targets[0][masks[0]], self.label_smoothing))
            predicted[head - 1][masks[head - 1]] = logits.max(dim=-1).indices

        model(**sample["net_input"], heads=list(enumerate(masks, start=1)), take=take)
        loss, supervised, log = self._result(sample, *first[0], int(masks[0].sum()))
        log.update(block_scores(predicted, torch.stack(targets), self.padding_idx))
        return loss, supervised, log

    def _result(self, sample: dict[str, Any], loss: Tensor, nll: Tensor, supervised: int) -> tuple[Tensor, int, dict]:
        sample_size = len(sample["target"]) if self.sentence_avg else supervised
        log = {
            "loss": loss.detach(),
            "nll_loss": nll.detach(),
            "ntokens": supervised,
            "nsentences": len(sample["target"]),
            "sample_size": sample_size,
        }
        return loss, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log means over all workers and batches."""
        log_losses(logging_outputs)
        log_block_scores(logging_outputs)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def targets_of_head(target: Tensor, head: int, pad: int) -> Tensor:
    """What a head is to predict at each position: the target `head` - 1 positions further on.

    Args:
        target: B x W, what head 1 is to predict.
        head: from 1.
        pad: padding symbol; stands where there is nothing to predict.

    Returns:
        B x W.
    """
    shift = min(head - 1, target.size(1))
    shifted = torch.cat([target[:, shift:], target.new_full((target.size(0), shift), pad)], dim=1)
    return shifted.masked_fill(target.eq(pad), pad)


def block_scores(predicted: Tensor, targets: Tensor, pad: int) -> dict[str, Tensor | int]:
    """Sums that tell how good the heads are.

    A block at a position is accepted as decoding would accept it, with the reference as context: head 1's token, then
    proposals as long as head 1, further on, says the same.

    Args:
        predicted: k x B x W, each head's token at each position, for k heads in order.
        targets: k x B x W, what it should be; padding where there is nothing to predict.
        pad: padding symbol.

    Returns:
        `_accepted`: tokens of `_blocks` blocks; `_correct_I`: right tokens of head I (from 0), of `_valid_I`.
    """
    valid = targets.ne(pad)
    confirmed = [
        predicted[head] == targets_of_head(predicted[0].masked_fill(~valid[0], pad), head + 1, pad)
        for head in range(len(predicted))
    ]
    passed = torch.stack(confirmed, dim=-1) & valid.permute(1, 2, 0)  # B x W x k; head 1 confirms itself
    sums: dict[str, Tensor | int] = {"_accepted": accepted_prefix_length(passed).sum(), "_blocks": int(valid[0].sum())}
    for number in range(len(predicted)):
        right = (predicted[number] == targets[number]) & valid[number]
        sums[f"_correct_{number}"], sums[f"_valid_{number}"] = right.sum(), valid[number].sum()
    return sums
