"""The drafter of papers/000 §3.2.1: a Transformer whose decoder predicts a block of k tokens at once.

Its decoder reads the start symbol and y1..yp, as the verifier does, then k mask positions p+1..p+k; the output at a
mask position predicts the token at that same position. With `prefix_attention` "causal" the prefix attends to itself
from left to right, and a block to its prefix and to itself: the states of the prefix can be cached in decoding, and
serve any number of blocks in training. "bidirectional" is the paper's drafter: prefix and block attend to each other.

Training blocks (L_NAR): a target sentence is y1..yT and EOS. The block at prefix length p, 0 <= p <= T, is the k
positions p+1..p+k: given the source and y1..yp, the drafter predicts their tokens at once. Positions after EOS have no
target.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, register_model
from torch import Tensor, nn

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architectures import register_sizes
from fairseq_aggdec.models.nar_drafter_decoder import (
    NarDrafterConfig,
    NarDrafterDecoder,
    Reading,
)
from fairseq_aggdec.models.small_drafter import DrafterModel


class Blocks(NamedTuple):
    """R blocks of k positions for each of B sentences."""

    prefix_lengths: Tensor
    """B x R: p of each block, the number of target tokens before it"""
    targets: Tensor
    """B x R x k: the tokens of positions p+1..p+k, EOS included; padding after EOS"""
    valid: Tensor
    """B x R x k: whether the position has a target"""


def blocks_at(
    target: Tensor, prefix_lengths: Tensor, block_size: int, pad: int
) -> Blocks:
    """Cut blocks out of targets, B x L, padded on the right, at prefix lengths from 0 to the sentence's T, B x R."""
    steps = torch.arange(block_size, device=target.device)
    # B x R x k; target[:, p + i] is y of position p+1+i
    index = prefix_lengths[..., None] + steps
    inside = index < target.size(1)
    index = index.clamp(max=target.size(1) - 1)
    targets = (
        target.gather(1, index.flatten(1)).view_as(index).masked_fill(~inside, pad)
    )
    return Blocks(prefix_lengths, targets, targets.ne(pad))


def spread_prefix_lengths(offsets: Tensor, lengths: Tensor, blocks: int) -> Tensor:
    """Prefix lengths from 0 to T, B x R, as far apart as possible within a sentence (systematic sampling).

    A sentence's offset in [0, 1) decides all R = `blocks` of them. Each is uniform on 0..T where the offset is uniform;
    two are equal only where R exceeds T+1. Lengths, B, are T+1: tokens with EOS, at least 1.
    """
    steps = torch.arange(blocks, device=offsets.device, dtype=offsets.dtype) / blocks
    fractions = (offsets[:, None] + steps) % 1.0
    # rounding may turn a fraction just below 1 into T+1
    return torch.minimum(
        (fractions * lengths[:, None]).long(), lengths[:, None].long() - 1
    )


def random_prefix_lengths(lengths: Tensor, blocks: int) -> Tensor:
    """Random prefix lengths for training, B x R; see `spread_prefix_lengths`."""
    return spread_prefix_lengths(
        torch.rand(lengths.size(0), device=lengths.device), lengths, blocks
    )


def fixed_prefix_lengths(ids: Tensor, lengths: Tensor, blocks: int) -> Tensor:
    """Prefix lengths for validation, B x R, which depend on the sentence's number in the data set (B) alone."""
    # multiples of it modulo 1 cover the unit interval evenly
    golden = 0.6180339887498949
    return spread_prefix_lengths((ids.double() * golden) % 1.0, lengths, blocks)


@register_model("nar_drafter")
class NarDrafterModel(DrafterModel):
    """A Transformer whose decoder drafts blocks."""

    config = NarDrafterConfig

    def __init__(
        self, cfg: NarDrafterConfig, encoder: FairseqEncoder, decoder: NarDrafterDecoder
    ) -> None:
        super().__init__(cfg, encoder, decoder)
        self.block_size = cfg.block_size
        self.decoding_block_size = cfg.decoding_block_size or cfg.block_size

    @classmethod
    def build_decoder(
        cls, cfg: NarDrafterConfig, tgt_dict: Dictionary, embed_tokens: nn.Embedding
    ) -> NarDrafterDecoder:
        return NarDrafterDecoder(cfg, tgt_dict, embed_tokens)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        blocks: Blocks | None = None,
        reveal: Callable[[Tensor], Tensor] | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        """Logits at the block positions that are trained.

        One call makes both passes of glancing, as distributed training requires. Both passes draw the same dropout, so
        the source and a causal prefix are read once.

        Args:
            src_tokens: B x S.
            src_lengths: B.
            prev_output_tokens: B x W, the start symbol and y1..yT, padded on the right.
            blocks: R blocks of each sentence.
            reveal: maps the first pass's tokens (B x R x k; padding where there is no target) to the positions
                (B x R x k booleans) that show their target in the second pass; None: there is one pass.

        Returns:
            N x V logits, and their positions, B x R x k booleans, N of them true: valid and not revealed.
        """
        if blocks is None:
            raise AggdecError(
                "the drafter is trained with --task block_drafting --criterion glancing_block_loss"
            )
        reading = self.decoder.read(
            prev_output_tokens, self.encode(src_tokens, src_lengths)
        )
        revealed = None if reveal is None else reveal(self._first_pass(reading, blocks))
        trained = blocks.valid if revealed is None else blocks.valid & ~revealed
        features = self.decoder.draft(
            reading, blocks.prefix_lengths, revealed, blocks.targets
        )
        # a transition head reads the reference's token before each position: in decoding, too, while the draft is right
        last = prev_output_tokens.gather(1, blocks.prefix_lengths)[..., None]
        before = torch.cat([last, blocks.targets[..., :-1]], dim=-1)
        return self._logits_after(features[trained], before[trained]), trained

    def encode(
        self, src_tokens: Tensor, src_lengths: Tensor
    ) -> dict[str, list[Tensor]]:
        """fairseq's encoder output, without gradients where the encoder is frozen."""
        with torch.no_grad() if self.cfg.freeze_encoder else nullcontext():
            return self.encoder(src_tokens, src_lengths=src_lengths)

    def _logits_after(self, features: Tensor, before: Tensor) -> Tensor:
        """N x V logits of features (N x D), given the token before each (N), which a transition head reads."""
        if self.decoder.transitions is not None:
            features = self.decoder.transitions(features, self.decoder.embed(before))
        return self.decoder.output_layer(features)

    @torch.no_grad()
    def _first_pass(self, reading: Reading, blocks: Blocks) -> Tensor:
        """The tokens of the first pass, B x R x k, drafted with the dropout that the second pass will draw.

        They are chosen as in decoding: a transition head reads its own choice before each position, not the reference's
        token, so that a mistake may cause further ones.
        """
        device = blocks.targets.device
        devices, kind = (
            ([], "cuda") if device.type == "cpu" else ([device], device.type)
        )
        with torch.random.fork_rng(devices, device_type=kind):
            features = self.decoder.draft(reading, blocks.prefix_lengths)
        predicted = torch.full_like(blocks.targets, self.decoder.padding_idx)
        if self.decoder.transitions is None:  # tokens are independent of each other
            logits = self.decoder.output_layer(features[blocks.valid])
            predicted[blocks.valid] = self.decoder.best_tokens(logits)
            return predicted
        last = reading.tokens.gather(1, blocks.prefix_lengths)  # B x R
        # positions with a target come first
        for step, valid in enumerate(blocks.valid.unbind(dim=-1)):
            logits = self._logits_after(features[:, :, step][valid], last[valid])
            last = predicted[..., step]
            last[valid] = self.decoder.best_tokens(logits)
        return predicted


register_sizes("nar_drafter", small_decoder=2, option="encoder_from")
