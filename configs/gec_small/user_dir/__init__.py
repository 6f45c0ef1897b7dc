"""fairseq's --user-dir for the training of correctors: a loss in which edited tokens weigh more than copied ones.

After the edit-weighted objective of Junczys-Dowmunt et al. 2018, "Approaching Neural Grammatical Error Correction as a
Low-Resource Machine Translation Task": nine of ten target tokens of a corrector are copies of the source and dominate
a plain mean. The paper finds edited words by an aligner; here a token is a copy if the source has the same bigram of
the token before and the token.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

# the first import registers the plugin's tasks and models, too
from fairseq_aggdec.criterions.block_metrics import SummedCriterion, log_mean, total
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss
from fairseq_aggdec.errors import AggdecError


@dataclass
class EditWeightedLossConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(
        default=0.1, metadata={"help": "probability spread over the other tokens"}
    )
    edit_weight: float = field(
        default=3.0,
        metadata={
            "help": "weight of a token that the source does not have after the same token; a copy has 1"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("edit_weighted_loss", dataclass=EditWeightedLossConfig)
class EditWeightedLoss(SummedCriterion):
    """The weighted mean over a batch's target tokens; source and target share a dictionary."""

    def __init__(self, cfg: EditWeightedLossConfig, task: FairseqTask) -> None:
        super().__init__(cfg, task)
        if not cfg.edit_weight > 0:
            raise AggdecError(f"--edit-weight {cfg.edit_weight}: must be above 0")
        if task.source_dictionary != task.target_dictionary:
            raise AggdecError(
                "--criterion edit_weighted_loss needs one dictionary for source and target"
            )

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor | int, dict[str, Any]]:
        """The summed loss, the number to divide it by, and sums for the log; `reduce` is not used."""
        target = sample["target"]
        net_input = sample["net_input"]
        logits = model(**net_input)[0]
        edited = edits(net_input["src_tokens"], target, self.padding_idx)
        kept = target.ne(self.padding_idx)
        weights = 1.0 + (self.cfg.edit_weight - 1.0) * edited.float()
        loss, nll = smoothed_loss(
            logits, target, self.cfg.label_smoothing, weights, self.padding_idx
        )
        loss, sample_size, log = self.summed(
            sample, loss, nll, int(kept.sum()), weights[kept].sum()
        )
        if not model.training:
            _, log["_edit_nll"] = smoothed_loss(
                logits[edited].detach(), target[edited], 0.0
            )
            log["_edits"] = edited.sum()
        return loss, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """In validation also log `edit_nll_loss`, of edited tokens, in bits."""
        super().reduce_metrics(logging_outputs)
        if total(logging_outputs, "_edits") > 0:
            log_mean(
                logging_outputs, "edit_nll_loss", "_edit_nll", "_edits", math.log(2)
            )


def edits(source: Tensor, target: Tensor, pad: int) -> Tensor:
    """Whether the source lacks each target token after the same token, B x T; `pad` stands before the first token.

    Source: B x S, padded on either side; target: B x T, padded on the right.
    """
    before_source = F.pad(source[:, :-1], (1, 0), value=pad)
    before_target = F.pad(target[:, :-1], (1, 0), value=pad)
    is_token = target[:, :, None].eq(source[:, None])  # B x T x S
    is_after = before_target[:, :, None].eq(before_source[:, None])
    return target.ne(pad) & ~(is_token & is_after).any(dim=2)
