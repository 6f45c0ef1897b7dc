"""Blockwise parallel decoding's model (papers/004 §4 and §6): a Transformer that predicts the next k tokens at once.

Head 1 predicts the next token and is the model that is decoded; heads 2 to k propose the tokens after it. To everything
that knows nothing of heads this is an ordinary Transformer: fairseq's own search decodes head 1.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerDecoderBase, TransformerModelBase
from torch import Tensor, nn

from fairseq_aggdec.compat.checkpoints import is_loading_models
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architecture_defaults import set_sizes
from fairseq_aggdec.models.base_checkpoint import load_base, take_architecture
from fairseq_aggdec.models.blockwise_config import BlockwiseTransformerConfig, refuse_unsupported
from fairseq_aggdec.models.frozen_weights import ExactFrozenWeights
from fairseq_aggdec.models.proposal_heads import ProposalHeads

__all__ = ["BlockwiseDecoder", "BlockwiseTransformerConfig", "BlockwiseTransformerModel", "proposal_heads"]


class BlockwiseDecoder(TransformerDecoderBase):
    """fairseq's Transformer decoder, unchanged up to its output; `heads` stand before the vocabulary projection."""

    own_weights = ("heads.",)
    """what a plain Transformer's checkpoint does not hold"""

    def __init__(
        self, cfg: BlockwiseTransformerConfig, dictionary: Any, embed_tokens: nn.Embedding, **options: Any
    ) -> None:
        super().__init__(cfg, dictionary, embed_tokens, **options)
        hidden = cfg.head_ffn_embed_dim or cfg.decoder.ffn_embed_dim
        self.heads = ProposalHeads(
            cfg.block_heads, self.output_embed_dim, hidden, cfg.dropout, cfg.identity_head, cfg.own_hidden
        )
        self.never_proposed = [dictionary.pad(), dictionary.bos()]

    def fitting(self, name: str, value: Tensor, options: Any) -> Tensor | None:
        """What of another checkpoint's heads these can start from: with hidden layers of their own, its first ones.

        Args:
            name: a weight, as this decoder names its own.
            value: the weight there.
            options: of the other model.

        Returns:
            The value for the weight here; None where none of it fits.
        """
        ours = self.state_dict().get(name)
        there = options.get if isinstance(options, dict) else partial(getattr, options)
        if ours is None or there("identity_head", False) != self.heads.identity_head:
            return None
        if self.heads.own_hidden and there("own_hidden", False):
            value = value[: len(ours)]
        return value if value.shape == ours.shape else None

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits of head 1: ... x D -> ... x V."""
        return self.head_logits(features, 1)

    def head_logits(self, features: Tensor, head: int) -> Tensor:
        """Logits of a head, from 1 to k: the decoder's output, ... x D -> ... x V."""
        return self.output_projection(self.heads(features, head))


@register_model("blockwise_transformer")
class BlockwiseTransformerModel(ExactFrozenWeights, TransformerModelBase):
    """Encoder and decoder with k heads."""

    def __init__(self, cfg: BlockwiseTransformerConfig, encoder: Any, decoder: BlockwiseDecoder) -> None:
        super().__init__(cfg, encoder, decoder)
        self.exact_weights = {}
        self.base_is_frozen = cfg.freeze_base
        # weights that ask for no gradient round otherwise in PyTorch: a model that decodes is to do as its base does
        if self.base_is_frozen and not is_loading_models():
            self.requires_grad_(False)
            decoder.heads.requires_grad_(True)

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Options on the command line; their defaults are those of the architecture or of the base checkpoint."""
        gen_parser_from_dataclass(parser, BlockwiseTransformerConfig(), delete_default=True, with_prefix="")

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "BlockwiseTransformerModel":
        """Build from fairseq's options, flat or nested, and start from the base checkpoint where one is named.

        Raises:
            AggdecError: options without meaning, or a base checkpoint that does not fit.
        """
        config = BlockwiseTransformerConfig.from_namespace(cfg)
        refuse_unsupported(config)
        model = super().build_model(config, task)
        if is_loading_models():  # all weights are at hand; the base checkpoint may be gone
            return model
        if config.base_checkpoint:
            load_base(model, config.base_checkpoint)
            model.keep_exact()
        elif config.freeze_base:
            raise AggdecError("--freeze-base without --base-checkpoint would keep random weights: name the model")
        return model

    @classmethod
    def build_decoder(
        cls, cfg: BlockwiseTransformerConfig, tgt_dict: Any, embed_tokens: nn.Embedding
    ) -> BlockwiseDecoder:
        return BlockwiseDecoder(cfg, tgt_dict, embed_tokens)

    def train(self, mode: bool = True) -> "BlockwiseTransformerModel":
        """Training mode; a frozen base stays as it decodes, without dropout."""
        super().train(mode)
        if self.base_is_frozen:
            self.encoder.eval()
            self.decoder.eval()
            self.decoder.heads.train(mode)
        return self

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        heads: Sequence[tuple[int, Tensor]] | None = None,
        take: Callable[[int, Tensor], Any] | None = None,
        **options: Any,
    ) -> Any:
        """Head 1's scores as a Transformer has them, or what is wanted of several heads.

        Logits of all heads at all positions are large, and here one head's exist at a time.

        Args:
            src_tokens: B x S.
            src_lengths: B.
            prev_output_tokens: B x W, the start symbol and y1...
            heads: heads, and for each the positions (B x W) at which it is wanted; None for the plain model.
            take: called with a head and its N x V logits at its N positions, in order.
            options: of the plain model.

        Returns:
            fairseq's decoder output; with `heads`, what `take` returned for each.
        """
        if heads is None or take is None:
            return super().forward(src_tokens, src_lengths, prev_output_tokens, **options)
        with torch.no_grad() if self.base_is_frozen else nullcontext():
            encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
            features = self.decoder.extract_features(prev_output_tokens, encoder_out)[0]  # B x W x D
        return [take(head, self.decoder.head_logits(features[positions], head)) for head, positions in heads]


def proposal_heads(model: Any) -> int:
    """The number of heads of a model, head 1 included; 0 for a model without."""
    decoder = getattr(model, "decoder", None)
    return int(decoder.heads.heads) if isinstance(decoder, BlockwiseDecoder) else 0


def _architecture(cfg: Any, dim: int, ffn: int, heads: int, encoder_layers: int, decoder_layers: int) -> None:
    base = getattr(cfg, "base_checkpoint", None)
    if base and not is_loading_models():
        take_architecture(cfg, base)
    set_sizes(cfg, dim, ffn, heads, encoder_layers, decoder_layers)


@register_model_architecture("blockwise_transformer", "blockwise_transformer")
def blockwise_transformer(cfg: Any) -> None:
    """Transformer-base, or the architecture of --base-checkpoint."""
    _architecture(cfg, 512, 2048, 8, 6, 6)


@register_model_architecture("blockwise_transformer", "blockwise_transformer_base")
def blockwise_transformer_base(cfg: Any) -> None:
    """Transformer-base by another name."""
    blockwise_transformer(cfg)


@register_model_architecture("blockwise_transformer", "blockwise_transformer_big")
def blockwise_transformer_big(cfg: Any) -> None:
    """Transformer-big."""
    _architecture(cfg, 1024, 4096, 16, 6, 6)


@register_model_architecture("blockwise_transformer", "blockwise_transformer_small")
def blockwise_transformer_small(cfg: Any) -> None:
    """For small data and CPUs: four encoder layers, three decoder layers."""
    _architecture(cfg, 256, 1024, 4, 4, 3)
