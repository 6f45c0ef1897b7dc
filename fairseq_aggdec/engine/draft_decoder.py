"""The forward pass of a block drafter's decoder, its prefix read once where it is causal.

The layers are stock, so that the verifier's engine runs them: a block holds the tokens that a row has committed since
the last draft, any number of them, and k masks, which see each other. The keys and values of the masks lie behind the
row's length and are overwritten by the next block.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder


class DraftDecoder:
    """A `block_draft.BlockModel` over a `NarDrafterDecoder`.

    A bidirectional prefix sees the block and so changes with it: it is read anew for every draft.
    """

    def __init__(self, decoder: NarDrafterDecoder) -> None:
        """
        Args:
            decoder: in evaluation mode.

        Raises:
            ValueError: the decoder has something that the engine lacks.
        """
        self.max_positions = decoder.max_positions()
        self._decoder = decoder
        self._engine = BlockDecoder(decoder, kinds=(NarDrafterDecoder,))
        self._encoder_out: dict[str, list[Tensor]] = {}
        self._read = torch.empty(0, dtype=torch.long)  # B, tokens of each row whose keys and values are cached
        self._read_host: list[int] = []

    def is_current(self) -> bool:
        """Whether the model still has the device and precision it was read with."""
        return self._engine.is_current()

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Take a new batch: what the drafter's encoder, or one with the same weights, returned for it."""
        self._engine.start(encoder_out)
        parts = ("encoder_embedding", "encoder_padding_mask")  # what a copy of the source takes
        self._encoder_out = {part: encoder_out[part] for part in parts}
        states = encoder_out["encoder_out"][0]
        self._read = torch.zeros(states.size(1), dtype=torch.long, device=states.device)
        self._read_host = [0] * states.size(1)

    def score(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        """See `block_draft.BlockModel.score`."""
        fresh = max(length - read for length, read in zip(lengths_host, self._read_host, strict=True))
        width = fresh + block_size  # rows with fewer fresh tokens have a few more masks, which are not looked at
        positions = self._read[:, None] + torch.arange(width, device=tokens.device)  # B x W
        is_mask = positions >= lengths[:, None]
        block = tokens.gather(1, positions.clamp(max=tokens.size(1) - 1)).masked_fill(
            is_mask, self._decoder.padding_idx
        )
        inputs = torch.where(
            is_mask[..., None], self._decoder.mask_inputs(positions, self._encoder_out), self._decoder.embed(block)
        )
        last_mask = lengths[:, None] + block_size - 1
        reach = last_mask.expand_as(positions)
        if self._decoder.is_causal:
            reach = torch.where(is_mask, reach, positions)
        features = self._engine.features(block, self._read, max(self._read_host), reach=reach, embeddings=inputs)
        drafted = (lengths - self._read)[:, None] + torch.arange(block_size, device=tokens.device)  # B x k
        features = features.gather(1, drafted[..., None].expand(-1, -1, features.size(-1)))
        if self._decoder.is_causal:
            self._read, self._read_host = lengths, list(lengths_host)
        return self._engine.project(features)

    def keep(self, rows: Tensor) -> None:
        self._engine.keep(rows)
        self._encoder_out = {part: [value[rows] for value in values] for part, values in self._encoder_out.items()}
        self._read = self._read[rows]
        self._read_host = [self._read_host[row] for row in rows.tolist()]
