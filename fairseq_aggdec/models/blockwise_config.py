"""Options of the model with proposal heads."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.models.transformer import TransformerConfig

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architecture_defaults import refuse_architectures


@dataclass
class BlockwiseTransformerConfig(TransformerConfig):
    """fairseq's Transformer options and those of the proposal heads."""

    block_heads: int = field(
        default=8, metadata={"help": "number of heads, k: tokens predicted at once, the ordinary next one included"}
    )
    head_ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden width of each head; 0: that of the decoder's feed-forward layers"}
    )
    own_hidden: bool = field(
        default=False,
        metadata={
            "help": "each head reads only its own part of the hidden layer, and not all of it as in Stern et al. 2018, "
            "§6: k times fewer output weights"
        },
    )
    identity_head: bool = field(
        default=False,
        metadata={"help": "head 1 is the base model's own output, and has no weights"},
    )
    base_checkpoint: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={"help": "put the heads on the Transformer of this checkpoint: its architecture and its weights"},
    )
    freeze_base: bool = field(
        default=False, metadata={"help": "train the heads alone; the weights of --base-checkpoint stay as they are"}
    )


def refuse_unsupported(cfg: BlockwiseTransformerConfig) -> None:
    """Raises `AggdecError` for an architecture that cannot have heads, and for a number that makes no sense."""
    refuse_architectures(cfg, "--arch blockwise_transformer")
    if cfg.block_heads < 2:
        raise AggdecError(f"--block-heads {cfg.block_heads}: give at least 2; with one, it is the base model itself")
    if cfg.head_ffn_embed_dim < 0:
        raise AggdecError(f"--head-ffn-embed-dim {cfg.head_ffn_embed_dim}: give at least 1, or 0 for the decoder's")
