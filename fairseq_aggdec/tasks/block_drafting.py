"""Training of block drafters: fairseq's translation task, which also chooses the training blocks of each sentence."""

import logging
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary
from fairseq.optim import FairseqOptimizer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.models.architectures import Options
from fairseq_aggdec.models.nar_drafter import (
    NarDrafterModel,
    fixed_prefix_lengths,
    random_prefix_lengths,
)
from fairseq_aggdec.tasks.data_folder import NamesMissingSplit
from fairseq_aggdec.tasks.hub_translation import HubTemplateMixin

logger = logging.getLogger(__name__)


@dataclass
class BlockDraftingConfig(TranslationConfig):
    """Options of the task."""

    blocks_per_sentence: int = field(
        default=1,
        metadata={
            "help": "number of blocks of a sentence trained in one pass, each after a prefix of another length"
        },
    )
    valid_blocks_per_sentence: int = field(
        default=4,
        metadata={
            "help": "the same number in validation, where the prefix lengths are fixed"
        },
    )


@register_task("block_drafting", dataclass=BlockDraftingConfig)
class BlockDraftingTask(NamesMissingSplit, HubTemplateMixin, TranslationTask):
    """Adds `prefix_lengths` (B x R) and `update_num` to each batch, for the criterion."""

    needs_targets = True

    def __init__(
        self, cfg: BlockDraftingConfig, src_dict: Dictionary, tgt_dict: Dictionary
    ) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        # saved in the checkpoint: decoding compares the dictionaries of drafter and verifier symbol by symbol
        self.state.merge_state_dict(
            {
                "source_symbols": list(src_dict.symbols),
                "target_symbols": list(tgt_dict.symbols),
            }
        )
        check_least(cfg, 1, "blocks_per_sentence", "valid_blocks_per_sentence")
        if cfg.left_pad_target:
            raise AggdecError(
                "--task block_drafting reads targets from the left: leave out --left-pad-target"
            )

    def build_model(
        self, cfg: Options, from_checkpoint: bool = False
    ) -> NarDrafterModel:
        """As fairseq's; raises `AggdecError` for a model that is no drafter."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, NarDrafterModel):
            name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
            raise AggdecError(
                f"--task block_drafting trains drafters: give --arch nar_drafter, not {name}"
            )
        return model

    def build_generator(self, *_: Any, **__: Any) -> NoReturn:
        """Raise `AggdecError`: drafters do not decode in this task."""
        raise AggdecError(
            "--task block_drafting does not decode: give the drafter as --drafter-path to --task "
            "aggressive_translation. In training leave out --eval-bleu; validation reports `accepted` instead: "
            "--best-checkpoint-metric accepted --maximize-best-checkpoint-metric"
        )

    def train_step(
        self,
        sample: dict[str, Any],
        model: NarDrafterModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
        **extra: Any,
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """As fairseq's, with random prefix lengths; they depend on the update, so that a resumed run repeats them."""
        prefix_lengths = random_prefix_lengths(
            self._lengths(sample), self.cfg.blocks_per_sentence
        )
        sample = {**sample, "prefix_lengths": prefix_lengths, "update_num": update_num}
        return super().train_step(
            sample, model, criterion, optimizer, update_num, ignore_grad, **extra
        )

    def valid_step(
        self,
        sample: dict[str, Any],
        model: NarDrafterModel,
        criterion: FairseqCriterion,
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """As fairseq's, with prefix lengths that depend on the sentence's number alone."""
        lengths = self._lengths(sample)
        prefix_lengths = fixed_prefix_lengths(
            sample["id"], lengths, self.cfg.valid_blocks_per_sentence
        )
        return super().valid_step(
            {**sample, "prefix_lengths": prefix_lengths}, model, criterion
        )

    def _lengths(self, sample: dict[str, Any]) -> Tensor:
        """The number of tokens of each target, EOS included, B."""
        return sample["target"].ne(self.target_dictionary.pad()).sum(dim=1)
