"""Training of drafters: fairseq's translation task, with the blocks of each sentence chosen for it."""

import logging
from dataclasses import dataclass, field
from typing import Any

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.block_sampling import fixed_prefix_lengths, random_prefix_lengths
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import warm_start

logger = logging.getLogger(__name__)


@dataclass
class BlockDraftingConfig(TranslationConfig):
    """Options of the task."""

    blocks_per_sentence: int = field(
        default=1, metadata={"help": "blocks trained in one pass over a sentence, each at a prefix length of its own"}
    )
    valid_blocks_per_sentence: int = field(
        default=4, metadata={"help": "the same in validation, where the prefix lengths are fixed"}
    )


@register_task("block_drafting", dataclass=BlockDraftingConfig)
class BlockDraftingTask(TranslationTask):
    """Gives each batch `prefix_lengths` (B x R) and `update_num`, which the criterion reads."""

    def __init__(self, cfg: BlockDraftingConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        # fairseq saves them in the checkpoint, so that decoding can compare drafter and verifier symbol by symbol
        self.state.merge_state_dict(
            {"source_symbols": list(src_dict.symbols), "target_symbols": list(tgt_dict.symbols)}
        )
        for option in ("blocks_per_sentence", "valid_blocks_per_sentence"):
            if getattr(cfg, option) < 1:
                raise AggdecError(f"--{option.replace('_', '-')} {getattr(cfg, option)}: give at least 1")
        if cfg.left_pad_target:
            raise AggdecError("--task block_drafting reads targets from the left: leave out --left-pad-target")
        if cfg.eval_bleu:
            raise AggdecError(
                "--task block_drafting does not decode: leave out --eval-bleu; validation reports `accepted` instead, "
                "as in --best-checkpoint-metric accepted --maximize-best-checkpoint-metric"
            )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> NarDrafterModel:
        """Build the drafter, and start it from a verifier's weights unless a checkpoint is about to be loaded.

        Raises:
            AggdecError: another architecture, or a verifier that does not fit.
        """
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, NarDrafterModel):
            raise AggdecError(f"--task block_drafting trains drafters: give --arch nar_drafter, not {_name(cfg)}")
        if not from_checkpoint:
            warm_start(model, model.cfg.encoder_from, model.cfg.decoder_from)
        return model

    def build_generator(self, models: Any, args: Any, *_: Any, **__: Any) -> Any:
        """Refuse to decode.

        Raises:
            AggdecError: always.
        """
        raise AggdecError(
            "--task block_drafting does not decode: give the drafter as --drafter-path to --task aggressive_translation"
        )

    def train_step(
        self,
        sample: dict[str, Any],
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
        **extra: Any,
    ) -> Any:
        """fairseq's, with blocks at random prefix lengths; it seeds torch by the update: a resumed run repeats them."""
        prefix_lengths = random_prefix_lengths(self._lengths(sample), self.cfg.blocks_per_sentence)
        sample = {**sample, "prefix_lengths": prefix_lengths, "update_num": update_num}
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad, **extra)

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> Any:
        """fairseq's, with blocks at prefix lengths that a sentence's number fixes."""
        lengths = self._lengths(sample)
        prefix_lengths = fixed_prefix_lengths(sample["id"], lengths, self.cfg.valid_blocks_per_sentence)
        return super().valid_step({**sample, "prefix_lengths": prefix_lengths}, model, criterion)

    def _lengths(self, sample: dict[str, Any]) -> Tensor:
        """Tokens of each target with its EOS, B."""
        return sample["target"].ne(self.target_dictionary.pad()).sum(dim=1)


def _name(cfg: Any) -> str:
    return str(getattr(cfg, "_name", None) or getattr(cfg, "arch", None))
