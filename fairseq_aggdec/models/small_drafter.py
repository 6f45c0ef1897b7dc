"""An ordinary Transformer that drafts token by token (`--decoding speculative`), mostly on its verifier's encoder."""

from dataclasses import dataclass, field
from typing import Any, Optional, Self

import torch
from fairseq.data import Dictionary
from fairseq.models import (
    BaseFairseqModel,
    FairseqDecoder,
    FairseqEncoder,
    register_model,
)
from fairseq.models.transformer import TransformerConfig
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_aggdec.compat.checkpoints import is_loading_models
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architectures import Options, register_sizes
from fairseq_aggdec.models.hub_t5 import T5Encoder
from fairseq_aggdec.models.on_checkpoint import TransformerOnCheckpoint
from fairseq_aggdec.models.warm_start import FINGERPRINT_SIZE, warm_start


@dataclass
class DrafterConfig(TransformerConfig):
    """fairseq's Transformer options, and what a drafter takes from its verifier."""

    encoder_from: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "start from the encoder of this checkpoint, the verifier's; options of the architecture that are "
            "not given, the decoder's depth included, are taken from it"
        },
    )
    freeze_encoder: bool = field(
        default=False,
        metadata={
            "help": "do not train the encoder of --encoder-from, embeddings included, so that decoding can share it; "
            "with --share-all-embeddings the decoder's embeddings and output projection are not trained either"
        },
    )
    decoder_from: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "start from the fitting weights of this checkpoint's decoder"
        },
    )

    def __setattr__(self, name: str, value: Any) -> None:
        # fairseq takes every name that starts with `encoder_` for a field of `encoder`
        if name in ("encoder_from", "decoder_from"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


class DrafterModel(TransformerOnCheckpoint):
    """What drafters have in common: they start from a verifier, and may keep its encoder as it is."""

    config = DrafterConfig

    def __init__(
        self, cfg: DrafterConfig, encoder: FairseqEncoder, decoder: FairseqDecoder
    ) -> None:
        super().__init__(cfg, encoder, decoder)
        # the fingerprint of the verifier's encoder if this one is frozen to it, else zeros
        self.register_buffer(
            "encoder_fingerprint", torch.zeros(FINGERPRINT_SIZE, dtype=torch.int32)
        )
        if cfg.freeze_encoder:
            encoder.requires_grad_(False)

    @classmethod
    def build_model(cls, cfg: Options, task: FairseqTask) -> BaseFairseqModel:
        """Build from fairseq's options, flat or in groups; a new drafter starts from its verifier's weights."""
        cfg = cls.config.from_namespace(cfg)
        try:
            model = super().build_model(cfg, task)
        except ValueError as error:
            # fairseq's, such as for dictionaries that are not joined
            if not cfg.encoder_from:
                raise
            raise AggdecError(
                f"--encoder-from {cfg.encoder_from}: {error}; is this the data it was trained on?"
            ) from None
        if not is_loading_models():
            warm_start(model, cfg.encoder_from, cfg.decoder_from)
        return model

    @classmethod
    def build_encoder(
        cls, cfg: DrafterConfig, src_dict: Dictionary, embed_tokens: nn.Embedding
    ) -> FairseqEncoder:
        """The kind of encoder that the verifier has: of an imported T5, or fairseq's Transformer."""
        if hasattr(cfg, "distance_buckets"):
            return T5Encoder(cfg, src_dict, embed_tokens)
        return super().build_encoder(cfg, src_dict, embed_tokens)

    def train(self, mode: bool = True) -> Self:
        """Training mode; a frozen encoder has no dropout, as in decoding, where the verifier's is used."""
        super().train(mode)
        if self.cfg.freeze_encoder:
            self.encoder.eval()
        return self

    def load_state_dict(
        self, state_dict: dict[str, Tensor], strict: bool = True, **options: Any
    ) -> Any:
        """As fairseq's; raises `AggdecError` for a checkpoint without the weights shared with a verifier."""
        if strict and "encoder.embed_tokens.weight" not in state_dict:
            raise AggdecError(
                "this drafter was exported without the weights that it shares with its verifier (aggdec export "
                "--without-shared), so that it cannot work alone: give the verifier as --path and the drafter as "
                "--drafter-path"
            )
        return super().load_state_dict(state_dict, strict, **options)


@register_model("small_drafter")
class SmallDrafterModel(DrafterModel):
    """fairseq's Transformer; trained as any, by fairseq's tasks and criterions."""


register_sizes("small_drafter", small_decoder=2, option="encoder_from")
