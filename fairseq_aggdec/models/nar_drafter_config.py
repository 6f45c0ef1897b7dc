"""Options of drafters."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import TransformerConfig

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architecture_defaults import refuse_architectures


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
        default=None, metadata={"help": "start from the fitting weights of this checkpoint's decoder"}
    )

    def __setattr__(self, name: str, value: Any) -> None:
        # fairseq takes every name that starts with `encoder_` for a field of `encoder`
        if name in ("encoder_from", "decoder_from"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


@dataclass
class NarDrafterConfig(DrafterConfig):
    """Options of the block drafter."""

    block_size: int = field(default=10, metadata={"help": "number of tokens in a draft, k"})
    decoding_block_size: int = field(
        default=0,
        metadata={"help": "number of tokens that decoding drafts without a --block-size; 0: as many as in training"},
    )
    prefix_attention: ChoiceEnum(["causal", "bidirectional"]) = field(  # type: ignore[valid-type]
        default="causal",
        metadata={
            "help": "causal: the prefix attends left to right, so that decoding caches it and --blocks-per-sentence "
            "share it; bidirectional: prefix and block attend to each other, as in Ge et al. 2022"
        },
    )
    mask_source_copy: bool = field(
        default=False, metadata={"help": "add a learned soft copy of the source to the mask positions' input"}
    )
    transition_dim: int = field(
        default=0,
        metadata={
            "help": "hidden size (64 to 256) of a head that scores each draft token given the one before; 0: no head, "
            "the tokens of a draft are independent of each other, as in Ge et al. 2022"
        },
    )


def refuse_unsupported(cfg: NarDrafterConfig) -> None:
    """Raise `AggdecError` for an architecture that drafters do not support, and for invalid numbers."""
    further = {
        "--decoder-layerdrop": cfg.decoder.layerdrop > 0,
        "--checkpoint-activations": cfg.checkpoint_activations,
    }
    refuse_architectures(cfg, "the drafter", further)
    if cfg.block_size < 1:
        raise AggdecError(f"--block-size {cfg.block_size}: give at least 1")
    if not 0 <= cfg.decoding_block_size <= cfg.block_size:
        wanted, trained = cfg.decoding_block_size, cfg.block_size
        raise AggdecError(f"--decoding-block-size {wanted}: give 1 to {trained}, or 0 for {trained}, as in training")
    if cfg.transition_dim < 0:
        raise AggdecError(f"--transition-dim {cfg.transition_dim}: give 0 (no head) or more")
    if cfg.transition_dim and cfg.decoder.output_dim != cfg.decoder.embed_dim:
        raise AggdecError("--transition-dim needs --decoder-output-dim to equal --decoder-embed-dim")
    if cfg.mask_source_copy and (cfg.no_token_positional_embeddings or cfg.encoder.embed_dim != cfg.decoder.embed_dim):
        raise AggdecError("--mask-source-copy needs position embeddings, and encoder and decoder of one dimension")
