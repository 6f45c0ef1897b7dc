"""Blockwise parallel decoding's model (papers/004 §4, papers/004 §6): a Transformer that predicts k tokens at once.

Head 1 predicts the next token, and is the model that is decoded; heads 2 to k propose the tokens after it. Code that
does not read heads sees an ordinary Transformer: fairseq's search decodes head 1.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel, FairseqEncoder, register_model
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_aggdec.compat.checkpoints import is_loading_models, read_checkpoint
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.models.architectures import (
    Options,
    option_of,
    recorded_options,
    refuse_architectures,
    register_sizes,
)
from fairseq_aggdec.models.on_checkpoint import TransformerOnCheckpoint
from fairseq_aggdec.models.warm_start import shapes_of, take_weights


class ProposalHeads(nn.Module):
    """k outputs of one decoder state h: h + W2 relu(W1 h); head i predicts the i-th token from here (Figure 3).

    In the paper every head reads the whole of one hidden layer, which has k times the usual width: W2 has the weights
    of k times k feed-forward layers. With `own_hidden` each head reads its own k-th of the hidden layer: k times less
    to compute and to store. W2 starts at zero: every head begins as the base model's prediction of the next token.
    """

    def __init__(
        self,
        heads: int,
        dim: int,
        hidden: int,
        dropout: float,
        identity_head: bool = False,
        own_hidden: bool = False,
    ) -> None:
        """k `heads`, head 1 included, over a decoder's output of width D = `dim`; `hidden`: the hidden width of each.

        With `identity_head` head 1 is h itself, without weights. `dropout` applies to the summand W2 relu(W1 h).
        """
        super().__init__()
        self.heads = heads
        self.identity_head = identity_head
        self.own_hidden = own_hidden
        self.dropout = dropout
        learned = heads - identity_head
        self.inner = nn.Parameter(torch.empty(learned, hidden, dim))
        self.inner_bias = nn.Parameter(torch.zeros(learned, hidden))
        self.outer = nn.Parameter(
            torch.zeros(learned, dim, hidden if own_hidden else learned * hidden)
        )
        self.outer_bias = nn.Parameter(torch.zeros(learned, dim))
        bound = math.sqrt(6 / (dim + hidden))  # Glorot's, as fairseq's projections
        nn.init.uniform_(self.inner, -bound, bound)

    def forward(self, features: Tensor, head: int) -> Tensor:
        """The input of the vocabulary projection for a head from 1 to k, ... x D -> ... x D."""
        number = head - 1 - self.identity_head
        if number < 0:
            return features
        inner: Tensor = self.inner
        bias: Tensor = self.inner_bias
        if self.own_hidden:
            inner = inner[number : number + 1]
            bias = bias[number : number + 1]
        hidden = F.relu(F.linear(features, inner.flatten(0, 1), bias.flatten()))
        change = F.linear(hidden, self.outer[number], self.outer_bias[number])
        return features + F.dropout(change, self.dropout, self.training)


def trainable_heads(heads: ProposalHeads, base_is_frozen: bool) -> Sequence[int]:
    """The numbers of the heads that can be trained: all, or all but an identity head 1 on a frozen base."""
    first = 2 if base_is_frozen and heads.identity_head else 1
    return range(first, heads.heads + 1)


@dataclass
class BlockwiseTransformerConfig(TransformerConfig):
    """fairseq's Transformer options and those of the proposal heads."""

    block_heads: int = field(
        default=8,
        metadata={
            "help": "number of heads, k: tokens predicted at once, the ordinary next one included"
        },
    )
    head_ffn_embed_dim: int = field(
        default=0,
        metadata={
            "help": "hidden width of each head; 0: that of the decoder's feed-forward layers"
        },
    )
    own_hidden: bool = field(
        default=False,
        metadata={
            "help": "each head reads its own part of the hidden layer, in place of the whole as in Stern et al. 2018, "
            "§6: k times fewer output weights"
        },
    )
    identity_head: bool = field(
        default=False,
        metadata={"help": "head 1 is the base model's output, and has no weights"},
    )
    base_checkpoint: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "put the heads on the Transformer of this checkpoint: its architecture and its weights"
        },
    )
    freeze_base: bool = field(
        default=False,
        metadata={
            "help": "train the heads alone; the weights of --base-checkpoint stay as they are"
        },
    )


class BlockwiseDecoder(TransformerDecoderBase):
    """fairseq's Transformer decoder with `heads` between its last layer and the vocabulary projection."""

    def __init__(
        self,
        cfg: BlockwiseTransformerConfig,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        **options: Any,
    ) -> None:
        refuse_architectures(cfg, "--arch blockwise_transformer")
        check_least(cfg, 1 + cfg.identity_head, "block_heads")
        check_least(cfg, 0, "head_ffn_embed_dim")
        super().__init__(cfg, dictionary, embed_tokens, **options)
        hidden = cfg.head_ffn_embed_dim or cfg.decoder.ffn_embed_dim
        self.heads = ProposalHeads(
            cfg.block_heads,
            self.output_embed_dim,
            hidden,
            cfg.dropout,
            cfg.identity_head,
            cfg.own_hidden,
        )
        self.never_proposed = [dictionary.pad(), dictionary.bos()]

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits of head 1: ... x D -> ... x V."""
        return self.head_logits(features, 1)

    def head_logits(self, features: Tensor, head: int) -> Tensor:
        """Logits of a head, counted from 1 to k: ... x D -> ... x V."""
        return self.output_projection(self.heads(features, head))


@register_model("blockwise_transformer")
class BlockwiseTransformerModel(TransformerOnCheckpoint):
    """A Transformer whose decoder has k heads."""

    config = BlockwiseTransformerConfig

    def __init__(
        self,
        cfg: BlockwiseTransformerConfig,
        encoder: FairseqEncoder,
        decoder: BlockwiseDecoder,
    ) -> None:
        super().__init__(cfg, encoder, decoder)
        self.base_is_frozen = cfg.freeze_base
        # not in decoding, which must equal the base's: PyTorch rounds differently where no gradient is needed
        if self.base_is_frozen and not is_loading_models():
            self.requires_grad_(False)
            decoder.heads.requires_grad_(True)

    @classmethod
    def build_model(
        cls, cfg: Options, task: FairseqTask
    ) -> "BlockwiseTransformerModel":
        """Build from fairseq's options, flat or in groups, and load the base checkpoint where one is named."""
        config = BlockwiseTransformerConfig.from_namespace(cfg)
        model = super().build_model(config, task)
        # its own checkpoint has all weights; the base checkpoint may be gone
        if is_loading_models():
            return model
        if config.base_checkpoint:
            model._take_base(config.base_checkpoint)
            model.save_exactly(f"--base-checkpoint {config.base_checkpoint}")
        elif config.freeze_base:
            raise AggdecError(
                "--freeze-base without --base-checkpoint would keep random weights: name the model"
            )
        return model

    def _take_base(self, path: str) -> None:
        """Copy the weights of a checkpoint; heads only where they fit.

        With `own_hidden` in both models, a checkpoint with more heads gives its first ones.
        """
        checkpoint = read_checkpoint(path)
        state = dict(checkpoint["model"])
        options = recorded_options(checkpoint)
        heads = self.decoder.heads
        self.upgrade_state_dict(state)  # names of older versions

        def fitting(name: str, theirs: Tensor, ours: Tensor | None) -> Tensor | str:
            if not name.startswith("decoder.heads."):
                return "not needed"
            if heads.own_hidden and option_of(options, "own_hidden"):
                theirs = theirs[: len(heads.inner)]
            fits = ours is not None and theirs.shape == ours.shape
            same_kind = bool(option_of(options, "identity_head")) == heads.identity_head
            return theirs if fits and same_kind else shapes_of(theirs, ours)

        of_bart = "classification_heads."
        take_weights(
            self,
            f"--base-checkpoint {path}",
            state,
            "",
            fitting,
            ("decoder.heads.", of_bart),
        )

    @classmethod
    def build_decoder(
        cls,
        cfg: BlockwiseTransformerConfig,
        tgt_dict: Dictionary,
        embed_tokens: nn.Embedding,
    ) -> BlockwiseDecoder:
        return BlockwiseDecoder(cfg, tgt_dict, embed_tokens)

    def train(self, mode: bool = True) -> "BlockwiseTransformerModel":
        """Training mode; a frozen base has no dropout, as in decoding."""
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
        per_head: Callable[[int, Tensor], Any] | None = None,
        **options: Any,
    ) -> Any:
        """Decode with head 1 like a plain Transformer, or call `per_head` on the logits of the chosen heads.

        Only one head's logits are in memory at a time.

        Args:
            src_tokens, src_lengths: B x S and B.
            prev_output_tokens: B x W, the start symbol, then y1, y2...
            heads: pairs of a head's number, from 1, and its mask (B x W booleans, N of them true).
            per_head: called with a head's number and its N x V logits, in this order; its results are returned.
            options: of fairseq's `forward`, whose output is returned without `heads`.

        Raises `AggdecError` where no heads are given in training.
        """
        if heads is None or per_head is None:
            if self.training and torch.is_grad_enabled():
                raise AggdecError(
                    "--arch blockwise_transformer needs --criterion blockwise_loss: others train no heads"
                )
            return super().forward(
                src_tokens, src_lengths, prev_output_tokens, **options
            )
        with torch.no_grad() if self.base_is_frozen else nullcontext():
            encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
            # B x W x D
            features = self.decoder.extract_features(prev_output_tokens, encoder_out)[0]
        return [
            per_head(head, self.decoder.head_logits(features[positions], head))
            for head, positions in heads
        ]


def proposal_heads(model: BaseFairseqModel) -> int:
    """The number of a model's heads, head 1 included; 0 for a model without heads."""
    decoder = getattr(model, "decoder", None)
    return int(decoder.heads.heads) if isinstance(decoder, BlockwiseDecoder) else 0


register_sizes("blockwise_transformer", small_decoder=3, option="base_checkpoint")
