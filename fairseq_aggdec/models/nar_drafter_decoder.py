"""The block drafter's decoder: it reads a target once, and drafts any number of blocks after its prefixes."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.models.architectures import refuse_architectures
from fairseq_aggdec.models.small_drafter import DrafterConfig
from fairseq_aggdec.models.transformer_parts import (
    KeysValues,
    additive_mask,
    keys_values,
    look_up,
    position_table,
    run_layer,
)


@dataclass
class NarDrafterConfig(DrafterConfig):
    """Options of the block drafter."""

    block_size: int = field(
        default=10, metadata={"help": "number of tokens in a draft, k"}
    )
    decoding_block_size: int = field(
        default=0,
        metadata={
            "help": "number of tokens that decoding drafts without a --block-size; 0: as many as in training"
        },
    )
    prefix_attention: ChoiceEnum(["causal", "bidirectional"]) = field(  # type: ignore[valid-type]
        default="causal",
        metadata={
            "help": "causal: the prefix attends left to right, so that decoding caches it and --blocks-per-sentence "
            "share it; bidirectional: prefix and block attend to each other, as in Ge et al. 2022"
        },
    )
    mask_source_copy: bool = field(
        default=False,
        metadata={
            "help": "add a learned soft copy of the source to the mask positions' input"
        },
    )
    transition_dim: int = field(
        default=0,
        metadata={
            "help": "hidden size (64 to 256) of a head that scores each draft token given the one before; 0: no head, "
            "the tokens of a draft are independent of each other, as in Ge et al. 2022"
        },
    )


def _refuse_unsupported(cfg: NarDrafterConfig) -> None:
    """Raise `AggdecError` for an architecture that drafters do not support, and for invalid numbers."""
    further = {
        "--decoder-layerdrop": cfg.decoder.layerdrop > 0,
        "--checkpoint-activations": cfg.checkpoint_activations,
    }
    refuse_architectures(cfg, "the drafter", further)
    check_least(cfg, 1, "block_size")
    check_least(cfg, 0, "decoding_block_size", "transition_dim")
    if cfg.decoding_block_size > cfg.block_size:
        raise AggdecError(
            f"--decoding-block-size {cfg.decoding_block_size}: more than --block-size {cfg.block_size}"
        )
    if cfg.transition_dim and cfg.decoder.output_dim != cfg.decoder.embed_dim:
        raise AggdecError(
            "--transition-dim needs --decoder-output-dim to equal --decoder-embed-dim"
        )
    if cfg.mask_source_copy and (
        cfg.no_token_positional_embeddings
        or hasattr(cfg, "distance_buckets")
        or cfg.encoder.embed_dim != cfg.decoder.embed_dim
    ):
        raise AggdecError(
            "--mask-source-copy needs position embeddings, which T5 has not, and encoder and decoder of one dimension"
        )


class TransitionHead(nn.Module):
    """features + W relu(A embedding of the token before + B features + b).

    The papers' drafter predicts the tokens of a block independently of each other, so neighbours may mix two
    translations. This head corrects a position's features by the draft token before it. All expensive work stays
    parallel: only the best candidates of each position are compared with each other (`engine.draft_decoder`). The idea
    is that of structured non-autoregressive decoding (Sun et al., Fast Structured Decoding for Sequence Models, 2019);
    the correction is computed as in sequentially dependent draft heads (Ankner et al., Hydra, 2024).
    """

    def __init__(self, embed_dim: int, dim: int) -> None:
        """`embed_dim`: D, the width of features and embeddings; `dim`: H, the width of the hidden layer."""
        super().__init__()
        self.before = nn.Linear(embed_dim, dim, bias=False)
        self.here = nn.Linear(embed_dim, dim)
        self.out = nn.Linear(dim, embed_dim, bias=False)
        # a drafter trained without the head starts unchanged
        nn.init.zeros_(self.out.weight)

    def forward(self, features: Tensor, before: Tensor) -> Tensor:
        """The features of block positions, ... x D, corrected by the embedding of the token before each, ... x D."""
        return features + self.out(
            torch.relu(self.before(before) + self.here(features))
        )


class Reading(NamedTuple):
    """The results of reading source and target, from which any number of blocks can be drafted."""

    tokens: Tensor
    """B x W, the start symbol and y1.."""
    encoder_out: dict[str, list[Tensor]]
    cross: list[KeysValues]
    """keys and values of the source, for each layer"""
    cross_mask: Tensor | None
    """additive mask of the source's padding, B x 1 x 1 x S"""
    prefix: list[KeysValues]
    """keys and values of `tokens`, for each layer; empty for a bidirectional prefix, which is read with each block"""


class NarDrafterDecoder(TransformerDecoderBase):
    """fairseq's Transformer decoder, its layers unchanged, which reads a prefix and blocks of mask positions."""

    def __init__(
        self,
        cfg: NarDrafterConfig,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        **options: Any,
    ) -> None:
        _refuse_unsupported(cfg)
        super().__init__(cfg, dictionary, embed_tokens, **options)
        self.block_size = cfg.block_size
        self.is_causal = cfg.prefix_attention == "causal"
        self.never_drafted = [dictionary.pad(), dictionary.bos()]
        # random, with the scale of a token embedding
        self.mask_embedding = nn.Parameter(
            torch.randn(self.embed_dim) * self.embed_scale / self.embed_dim**0.5
        )
        self.transitions = (
            TransitionHead(self.embed_dim, cfg.transition_dim)
            if cfg.transition_dim
            else None
        )
        self.copy_query = (
            nn.Linear(self.embed_dim, self.embed_dim, bias=False)
            if cfg.mask_source_copy
            else None
        )

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """Raise `AggdecError`: this is the call of an ordinary decoder."""
        raise AggdecError(
            "this model is a block drafter, which does not decode alone: give it as --drafter-path, and the verifier "
            "as --path"
        )

    def read(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, list[Tensor]]
    ) -> Reading:
        """Read source and targets; `draft` may follow more than once.

        `prev_output_tokens`: B x W, the start symbol and y1..y(W-1); undefined after a row's longest prefix.
        """
        memory = encoder_out["encoder_out"][0].transpose(0, 1)  # B x S x C
        paddings = encoder_out["encoder_padding_mask"]
        cross_mask = (
            additive_mask(paddings[0], memory)[:, None, None] if paddings else None
        )
        cross = [keys_values(layer.encoder_attn, memory) for layer in self.layers]
        reading = Reading(prev_output_tokens, encoder_out, cross, cross_mask, [])
        if self.is_causal:
            width = prev_output_tokens.size(1)
            positions = torch.arange(width, device=memory.device)
            x = self._inputs(
                self.embed(prev_output_tokens),
                positions.expand_as(prev_output_tokens),
                width,
            )[:, None]
            causal = additive_mask(positions > positions[:, None], x)
            for layer, of_source in zip(self.layers[:-1], cross, strict=False):
                x, of_prefix = run_layer(layer, x, of_source, cross_mask, causal)
                reading.prefix.append(of_prefix)
            last = self.layers[-1]
            x = last.self_attn_layer_norm(x) if last.normalize_before else x
            reading.prefix.append(keys_values(last.self_attn, x.flatten(1, 2)))
        return reading

    def draft(
        self,
        reading: Reading,
        prefix_lengths: Tensor,
        revealed: Tensor | None = None,
        block_tokens: Tensor | None = None,
    ) -> Tensor:
        """Features of the block positions after prefixes of these lengths, B x R, before the vocabulary projection.

        Positions that are `revealed`, B x R x k booleans, show the token of `block_tokens`, B x R x k, in place of the
        mask. Returns B x R x k x D.
        """
        positions = (
            prefix_lengths[..., None]
            + 1
            + torch.arange(self.block_size, device=prefix_lengths.device)
        )
        x = self.mask_inputs(positions.flatten(1), reading.encoder_out).unflatten(
            1, positions.shape[1:]
        )
        if revealed is not None and block_tokens is not None:
            x = torch.where(revealed[..., None], self.embed(block_tokens), x)

        in_prefix = torch.arange(reading.tokens.size(1), device=positions.device)
        # B x 1 x R x 1 x W
        unseen = additive_mask(in_prefix > prefix_lengths[..., None], x)[
            :, None, :, None
        ]
        block_mask, prefix_mask = (
            (None, unseen)
            if self.is_causal
            else (F.pad(unseen, (0, self.block_size)), None)
        )
        # a prefix that attends to its block is read with each: B x R x (W + k) x D
        if not self.is_causal:
            prefix = self.embed(reading.tokens)[:, None].expand(-1, x.size(1), -1, -1)
            x = torch.cat([prefix, x], dim=2)
            positions = torch.cat(
                [in_prefix.expand(*prefix_lengths.shape, -1), positions], dim=2
            )
        x = self._inputs(x, positions, reading.tokens.size(1) + self.block_size)
        for number, (layer, cross) in enumerate(
            zip(self.layers, reading.cross, strict=True)
        ):
            before = reading.prefix[number] if self.is_causal else None
            x = run_layer(
                layer, x, cross, reading.cross_mask, block_mask, before, prefix_mask
            )[0]
        x = x[:, :, -self.block_size :]
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x

    def mask_inputs(
        self, positions: Tensor, encoder_out: dict[str, list[Tensor]]
    ) -> Tensor:
        """The inputs at mask positions, B x N x D, without position embeddings; they replace token embeddings.

        An input is the mask vector. With `mask_source_copy` a mean of the source embeddings is added, weighted by a
        softmax over the source of W(position) . (embedding + its position) / sqrt(D); padding does not count.
        `positions`: B x N, from 0 at the start symbol.
        """
        masks = self.mask_embedding.expand(*positions.shape, -1)
        if self.copy_query is None:
            return masks
        # B x S x D, scaled, without positions
        source = encoder_out["encoder_embedding"][0].to(masks)
        if encoder_out["encoder_padding_mask"]:
            hidden = encoder_out["encoder_padding_mask"][0]  # B x S
        else:
            hidden = torch.zeros(
                source.shape[:2], dtype=torch.bool, device=source.device
            )
        assert self.embed_positions is not None  # ensured by `_refuse_unsupported`
        table = position_table(
            self.embed_positions,
            max(source.size(1), int(positions.max()) + 1),
            self.mask_embedding,
        )
        keys = source + look_up(table, (~hidden).cumsum(1).sub(1).clamp(min=0))
        query = self.copy_query(look_up(table, positions))
        scores = query @ keys.transpose(1, 2) / self.embed_dim**0.5  # B x N x S
        weights = scores.masked_fill(hidden[:, None], -torch.inf).softmax(
            dim=-1, dtype=torch.float32
        )
        return masks + weights.to(source) @ source

    def best_tokens(self, logits: Tensor) -> Tensor:
        """The best tokens except those of `never_drafted`, ... x V -> ...; parts of `logits` are overwritten."""
        return best_tokens(logits, self.never_drafted)

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled token embeddings without positions, ... -> ... x D."""
        x = self.embed_scale * self.embed_tokens(tokens)
        return x if self.project_in_dim is None else self.project_in_dim(x)

    def _inputs(self, x: Tensor, positions: Tensor, end: int) -> Tensor:
        """The first layer's input: `x` (... x D) plus embeddings of its positions (..., below `end`), norm, dropout."""
        if self.embed_positions is not None:
            x = x + look_up(
                position_table(self.embed_positions, end, self.mask_embedding),
                positions,
            )
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)
