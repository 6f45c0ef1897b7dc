"""The drafter of papers/000 §3.2.1: a Transformer whose decoder predicts a block of k tokens at once.

Its decoder reads the start symbol and y1..yp, as the verifier does, then k mask positions p+1..p+k; the output at a
mask position predicts the token at that same position. With `prefix_attention` "causal" the prefix attends to itself
from left to right, and a block to its prefix and to itself: the states of the prefix can be cached in decoding, and
serve any number of blocks in training. "bidirectional" is the paper's drafter: prefix and block attend to each other.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architecture_defaults import register_sizes
from fairseq_aggdec.models.block_sampling import Blocks
from fairseq_aggdec.models.nar_drafter_config import NarDrafterConfig
from fairseq_aggdec.models.nar_drafter_decoder import NarDrafterDecoder, Reading
from fairseq_aggdec.models.small_drafter import DrafterModel, take_verifier

__all__ = ["NarDrafterConfig", "NarDrafterDecoder", "NarDrafterModel"]


@register_model("nar_drafter")
class NarDrafterModel(DrafterModel):
    """A Transformer whose decoder drafts blocks."""

    config = NarDrafterConfig

    def __init__(self, cfg: NarDrafterConfig, encoder: Any, decoder: NarDrafterDecoder) -> None:
        super().__init__(cfg, encoder, decoder)
        self.block_size = cfg.block_size
        self.decoding_block_size = cfg.decoding_block_size or cfg.block_size

    @classmethod
    def build_decoder(cls, cfg: NarDrafterConfig, tgt_dict: Any, embed_tokens: nn.Embedding) -> NarDrafterDecoder:
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
            raise AggdecError("the drafter is trained with --task block_drafting --criterion glancing_block_loss")
        reading = self.decoder.read(prev_output_tokens, self.encode(src_tokens, src_lengths))
        revealed = None
        if reveal is not None:
            revealed = reveal(self._first_pass(reading, blocks))
        trained = blocks.valid if revealed is None else blocks.valid & ~revealed
        features = self.decoder.draft(reading, blocks.prefix_lengths, revealed, blocks.targets)
        return self._logits(features, prev_output_tokens, blocks, trained), trained

    def encode(self, src_tokens: Tensor, src_lengths: Tensor) -> dict[str, list[Tensor]]:
        """fairseq's encoder output, without gradients where the encoder is frozen."""
        with torch.no_grad() if self.cfg.freeze_encoder else nullcontext():
            return self.encoder(src_tokens, src_lengths=src_lengths)

    def _logits(self, features: Tensor, prev_output_tokens: Tensor, blocks: Blocks, wanted: Tensor) -> Tensor:
        """N x V logits of the `wanted` positions (B x R x k, N true).

        A transition head reads the reference's token before each position. In decoding it reads the same token as long
        as the draft is right, so the number of leading right tokens is the same.
        """
        last = prev_output_tokens.gather(1, blocks.prefix_lengths)[..., None]
        before = torch.cat([last, blocks.targets[..., :-1]], dim=-1)
        return self._logits_after(features[wanted], before[wanted])

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
        devices, kind = ([], "cuda") if device.type == "cpu" else ([device], device.type)
        with torch.random.fork_rng(devices, device_type=kind):
            features = self.decoder.draft(reading, blocks.prefix_lengths)
        predicted = torch.full_like(blocks.targets, self.decoder.padding_idx)
        if self.decoder.transitions is None:  # tokens are independent of each other
            logits = self.decoder.output_layer(features[blocks.valid])
            predicted[blocks.valid] = self.decoder.best_tokens(logits)
            return predicted
        last = reading.tokens.gather(1, blocks.prefix_lengths)  # B x R
        for step, valid in enumerate(blocks.valid.unbind(dim=-1)):  # positions with a target come first
            logits = self._logits_after(features[:, :, step][valid], last[valid])
            last = predicted[..., step]
            last[valid] = self.decoder.best_tokens(logits)
        return predicted


register_sizes("nar_drafter", take_verifier, small_decoder=2)
