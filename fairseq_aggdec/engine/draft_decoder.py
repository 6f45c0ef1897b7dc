"""The forward pass of a block drafter's decoder, its prefix read once where it is causal.

The layers are stock, so that the verifier's engine runs them: a block holds the tokens that a row has committed since
the last draft, any number of them, and k masks, which see each other. The keys and values of the masks lie behind the
row's length and are overwritten by the next block.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.block_draft import exclude
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.fixed_steps import FixedMemory
from fairseq_aggdec.engine.layers import hiding
from fairseq_aggdec.engine.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.transition_tables import TransitionTables
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

Encode = Callable[[Tensor | None], dict[str, Any]]


class DraftDecoder:
    """A `block_draft.BlockModel` over a `NarDrafterDecoder`.

    A bidirectional prefix sees the block and so changes with it: it is read anew for every draft.
    """

    def __init__(self, decoder: NarDrafterDecoder, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        """
        Args:
            decoder: in evaluation mode.
            arithmetic: of the layers.

        Raises:
            ValueError: the decoder has something that the engine lacks.
            AggdecError: the precision, or the recording of steps, is not to be had on the decoder's device.
        """
        self.max_positions = decoder.max_positions()
        self._decoder = decoder
        self._copies_source = decoder.copy_query is not None
        self._transitions = None if decoder.transitions is None else TransitionTables(decoder)
        self._block_mask = _BlockMask()
        if self._copies_source:  # it is looked up by numbers that the host has to know
            arithmetic = replace(arithmetic, capture=None)
        self._engine = BlockDecoder(decoder, (NarDrafterDecoder,), arithmetic)
        self._encode: Encode | None = None  # not called yet
        self._rows: Tensor | None = None  # B, those of the batch that are left when it will be; None: all
        self._encoder_out: dict[str, list[Tensor]] = {}
        self._read = torch.empty(0, dtype=torch.long)  # B, tokens of each row whose keys and values are cached
        self._read_host: list[int] = []

    def is_current(self) -> bool:
        """Whether the model still has the device and precision it was read with."""
        return self._engine.is_current()

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Take a new batch: what the drafter's encoder, or one with the same weights, returned for it."""
        self.start_later(lambda rows: _rows_of(encoder_out, rows))

    def start_later(self, encode: Encode) -> None:
        """Take a new batch of which nothing is computed before a draft is wanted: in a large one that may be never.

        Args:
            encode: returns what the drafter's encoder has for some rows of the batch, or for all where given None.
        """
        self._encode, self._rows = encode, None

    def unread(self, lengths_host: Sequence[int]) -> int:
        """See `block_draft.BlockModel.unread`."""
        return sum(lengths_host) - (0 if self._encode is not None else sum(self._read_host))

    def draft(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        """See `block_draft.BlockModel.draft`."""
        features, drafted = self._block(tokens, lengths, block_size, lengths_host)
        return self._choose(features, _last_tokens(tokens, lengths)) if drafted is None else drafted

    def score(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        """See `block_draft.BlockModel.score`."""
        features, drafted = self._block(tokens, lengths, block_size, lengths_host)
        head = self._decoder.transitions
        if head is not None:
            last = _last_tokens(tokens, lengths)
            drafted = self._choose(features, last) if drafted is None else drafted
            before = torch.cat([last[:, None], drafted[:, :-1]], dim=1)
            features = head(features, self._decoder.embed(before))
        return self._engine.project(features)

    def keep(self, rows: Tensor) -> None:
        if self._encode is not None:
            self._rows = rows if self._rows is None else self._rows[rows]
            return
        self._engine.keep(rows)
        self._encoder_out = {part: [value[rows] for value in values] for part, values in self._encoder_out.items()}
        self._read = self._read[rows]
        self._read_host = [self._read_host[row] for row in rows.tolist()]

    def _begin(self) -> None:
        """What `start_later` has put off, for the rows that are left."""
        assert self._encode is not None
        encoder_out = self._encode(self._rows)
        rows = encoder_out["encoder_out"][0].size(1)
        self._read = torch.zeros(rows, dtype=torch.long, device=self._decoder.mask_embedding.device)
        self._read_host = [0] * rows
        self._engine.start(encoder_out)
        parts = ("encoder_embedding", "encoder_padding_mask") if self._copies_source else ()
        self._encoder_out = {part: encoder_out[part] for part in parts}
        self._encode = self._rows = None

    def _choose(self, features: Tensor, last: Tensor) -> Tensor:
        """Drafted tokens, B x k, after the token that stands before each block, B."""
        logits = self._engine.project(features)
        if self._transitions is None:
            return self._decoder.best_tokens(logits)
        exclude(logits, self._decoder.never_drafted)
        return self._transitions.chain(features, logits, last)

    def _block(
        self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]
    ) -> tuple[Tensor, Tensor | None]:
        """Decoder output at the masks behind each row's prefix, B x k x D; a causal prefix is then known as read.

        Drafted tokens, B x k, too, where they come with it.
        """
        if self._encode is not None:
            self._begin()
        is_causal = self._decoder.is_causal
        repeated = (
            None if self._engine.fixed_steps is None else self._repeated(tokens, lengths, block_size, lengths_host)
        )
        drafted: Tensor | None = None
        if repeated is not None:
            features, drafted = repeated
        elif tokens.size(0) == 1 and is_causal:
            features = self._features_of_one(tokens, lengths_host[0], block_size)
        else:
            block, positions = self._unread(tokens, block_size, lengths_host)
            features = self._features(block, positions, self._read, lengths, block_size, max(self._read_host))
        if is_causal:
            self._read, self._read_host = lengths, list(lengths_host)
        return features, drafted

    def _repeated(
        self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]
    ) -> tuple[Tensor, Tensor] | None:
        """`_block` by a step that is recorded; None where that does not pay."""
        assert self._engine.fixed_steps is not None
        block, _ = self._unread(tokens, block_size, lengths_host)
        numbers = (self._read, lengths, _last_tokens(tokens, lengths))
        step = partial(self._step, block_size)
        found = self._engine.fixed_steps.run(step, block, numbers, max(self._read_host), kind=block_size)
        return None if found is None else (found[0], found[1])

    def _step(
        self, block_size: int, memory: FixedMemory, block: Tensor, numbers: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """A draft as a `fixed_steps.Step`: features at the masks and drafted tokens."""
        read, lengths, last = numbers
        width = block.size(1)
        positions = read[:, None] + torch.arange(width, device=block.device)
        features = self._features(block, positions, read, lengths, block_size, memory.keys - width, memory)
        return features, self._choose(features, last)

    def _unread(self, tokens: Tensor, block_size: int, lengths_host: Sequence[int]) -> tuple[Tensor, Tensor]:
        """What each row has committed since the last draft, anything behind it, for k masks at least; its positions.

        Returns:
            B x W each.
        """
        fresh = max(length - read for length, read in zip(lengths_host, self._read_host, strict=True))
        width = fresh + block_size  # rows with fewer fresh tokens have a few more masks, which are not looked at
        positions = self._read[:, None] + torch.arange(width, device=tokens.device)  # B x W
        return tokens.gather(1, positions.clamp(max=tokens.size(1) - 1)), positions

    def _features(
        self,
        block: Tensor,
        positions: Tensor,
        read: Tensor,
        lengths: Tensor,
        block_size: int,
        longest: int,
        fixed: FixedMemory | None = None,
    ) -> Tensor:
        """Decoder output at the masks of any batch, B x k x D.

        Args:
            block, positions: from `_unread`, B x W.
            read: B, where it begins.
            lengths, block_size: see `draft`.
            longest, fixed: see `BlockDecoder.features`.
        """
        is_mask = positions >= lengths[:, None]
        masks = self._decoder.mask_inputs(positions, self._encoder_out)
        block = block.masked_fill(is_mask, self._decoder.padding_idx)
        inputs = torch.where(is_mask[..., None], masks, self._engine.embed(block))
        last_mask = lengths[:, None] + block_size - 1
        reach = last_mask.expand_as(positions)
        if self._decoder.is_causal:
            reach = torch.where(is_mask, reach, positions)
        drafted = (lengths - read)[:, None] + torch.arange(block_size, device=block.device)  # B x k
        return self._engine.features(None, read, longest, reach=reach, embeddings=inputs, wanted=drafted, fixed=fixed)

    def _features_of_one(self, tokens: Tensor, length: int, block_size: int) -> Tensor:
        """Decoder output at the masks of one row with a causal prefix, where the host knows every position."""
        read = self._read_host[0]
        fresh = length - read
        width = self._engine.computed_width(fresh + block_size, 1)
        if self._copies_source:
            positions = torch.arange(length, read + width, device=tokens.device)[None]
            masks = self._decoder.mask_inputs(positions, self._encoder_out)
        else:
            masks = self._decoder.mask_embedding.expand(1, width - fresh, -1)
        inputs = torch.cat([self._engine.embed(tokens[:, read:length]), masks], dim=1)
        keys = self._engine.computed_keys(read + width)
        mask = self._block_mask.of(length, fresh, block_size, width, keys, inputs)
        drafted = slice(fresh, fresh + block_size)
        return self._engine.features(None, self._read, read, mask=mask, embeddings=inputs, wanted=drafted)


def _rows_of(encoder_out: dict[str, Any], rows: Tensor | None) -> dict[str, Any]:
    """What an encoder returned for these rows; None: all."""
    if rows is None:
        return encoder_out
    return {
        "encoder_out": [states[:, rows] for states in encoder_out["encoder_out"]],  # S x B x C
        "encoder_padding_mask": [mask[rows] for mask in encoder_out["encoder_padding_mask"]],
        "encoder_embedding": [embedding[rows] for embedding in encoder_out["encoder_embedding"]],
    }


def _last_tokens(tokens: Tensor, lengths: Tensor) -> Tensor:
    return tokens.gather(1, lengths[:, None] - 1).squeeze(1)


class _BlockMask:
    """What fresh tokens (themselves and what is before) and masks (all up to the last mask) of one row see.

    Counted from the first mask, it is the same for every prefix: each block's mask is a part of one table.
    """

    def __init__(self) -> None:
        self._table = torch.empty(0)
        self._block_size = 0
        self._before = 0  # rows and columns of the table that stand for positions before the first mask

    def of(self, length: int, fresh: int, block_size: int, width: int, keys: int, like: Tensor) -> Tensor:
        """Additive mask, `width` x `keys`, of device and type `like`.

        Args:
            length: p + 1, where the first mask stands.
            fresh: how many of the positions before it are in the block.
            block_size: k; masks behind the k-th only fill the block.
            width: of the block.
            keys: how many positions are attended to, from the sentence's first.
        """
        table, first = self._table, self._before
        behind = max(width - fresh, keys - length)
        if (
            length > first
            or first + behind > table.size(0)
            or block_size != self._block_size
            or table.dtype != like.dtype
            or table.device != like.device
        ):
            first = self._before = max(2 * length, 64)
            offsets = torch.arange(-first, behind + block_size, device=like.device)
            hidden = (offsets > offsets[:, None]) & (offsets[:, None] < 0) | (offsets >= block_size)
            table = self._table = hiding(hidden, like)
            self._block_size = block_size
        return table[first - fresh : first - fresh + width, first - length : first - length + keys]
