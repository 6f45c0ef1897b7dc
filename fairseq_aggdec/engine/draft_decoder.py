"""The forward pass of a block drafter's decoder, its prefix read once where it is causal.

The layers are stock, so that the verifier's engine runs them: a block holds the tokens that a row has committed since
the last draft, any number of them, and k masks, which see each other. The keys and values of the masks lie behind the
row's length and are overwritten by the next block.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import exclude
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.transition_tables import TransitionTables
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder

Encode = Callable[[Tensor | None], dict[str, Any]]


class DraftDecoder:
    """A `drafters.block.BlockModel` over a `NarDrafterDecoder`.

    A bidirectional prefix sees the block and so changes with it: it is read anew for every draft.
    """

    def __init__(self, decoder: NarDrafterDecoder, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        """The decoder is in evaluation mode.

        Raises:
            ValueError: the decoder has something that the engine lacks.
            AggdecError: the precision is not to be had on the decoder's device.
        """
        self.max_positions = decoder.max_positions()
        self._decoder = decoder
        self._copies_source = decoder.copy_query is not None
        self._transitions = None if decoder.transitions is None else TransitionTables(decoder)
        mask = None if self._copies_source else decoder.mask_embedding[None]
        self._engine = BlockDecoder(decoder, (NarDrafterDecoder,), arithmetic, mask)
        self._encode: Encode | None = None  # not called yet
        self._rows: Tensor | None = None  # B, those of the batch that are left when it will be; None: all
        self._encoder_out: dict[str, list[Tensor]] = {}
        self._read: list[int] = []  # tokens of each row whose keys and values are cached

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Take a new batch: what the drafter's encoder, or one with the same weights, returned for it."""
        self.start_later(lambda rows: _rows_of(encoder_out, rows))

    def start_later(self, encode: Encode) -> None:
        """Take a new batch of which nothing is computed before a draft is wanted: in a large one that may be never.

        Args:
            encode: returns what the drafter's encoder has for some rows of the batch, or for all where given None.
        """
        self._encode, self._rows = encode, None

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """See `drafters.block.BlockModel.draft`."""
        return self._choose(*self._block(texts, block_size))

    def score(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """See `drafters.block.BlockModel.score`."""
        features, last = self._block(texts, block_size)
        head = self._decoder.transitions
        if head is not None:
            before = torch.cat([last[:, None], self._choose(features, last)[:, :-1]], dim=1)
            features = head(features, self._decoder.embed(before))
        return self._engine.project(features)

    def go_back(self, lengths: Sequence[int]) -> None:
        """See `decoding.beam.drafted_rows.ReturningModel.go_back`."""
        if self._encode is None:
            self._read = list(map(min, self._read, lengths))

    def keep(self, rows: Tensor) -> None:
        if self._encode is not None:
            self._rows = rows if self._rows is None else self._rows[rows]
            return
        self._engine.keep(rows)
        self._encoder_out = {part: [value[rows] for value in values] for part, values in self._encoder_out.items()}
        self._read = [self._read[row] for row in rows.tolist()]

    def _begin(self) -> None:
        """What `start_later` has put off, for the rows that are left."""
        assert self._encode is not None
        encoder_out = self._encode(self._rows)
        self._read = [0] * encoder_out["encoder_out"][0].size(1)
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

    def _block(self, texts: Sequence[Sequence[int]], block_size: int) -> tuple[Tensor, Tensor]:
        """Decoder output at the masks behind each row's prefix, B x k x D, and the token before them, B.

        A block holds what each row has committed since the last draft, then masks: k for the row with most of that, for
        others a few more, which are not looked at. A causal prefix is then known as read.
        """
        if self._encode is not None:
            self._begin()
        decoder, engine, starts = self._decoder, self._engine, self._read
        is_causal, pad = decoder.is_causal, decoder.padding_idx
        mask = decoder.embed_tokens.num_embeddings if engine.reads_further else pad  # or any: `inputs` replace it
        width = block_size + max(len(text) - start for text, start in zip(texts, starts, strict=True))
        numbers = array("q")  # of each row: the last token, start, block, what it reaches, which columns are wanted
        for text, start in zip(texts, starts, strict=True):
            fresh, end = len(text) - start, len(text) + block_size - 1  # up to the last mask
            first = start + fresh if is_causal else start
            row = [text[-1], start, *text[start:], *[mask] * (width - fresh)]
            row += [*range(start, first), *[end] * (width - (first - start)), *range(fresh, fresh + block_size)]
            numbers.extend(row)
        parts = torch.frombuffer(numbers, dtype=torch.long).view(len(texts), -1).to(decoder.mask_embedding.device)
        last, begin, block, reach, wanted = parts.split_with_sizes([1, 1, width, width, block_size], dim=1)

        inputs = None
        if not engine.reads_further:
            columns = torch.arange(width, device=parts.device)
            masks = decoder.mask_inputs(begin + columns, self._encoder_out)
            inputs = torch.where((columns >= wanted[:, :1])[..., None], masks, engine.embed(block))
        features = engine.features(block, begin[:, 0], max(starts), reach=reach, embeddings=inputs, wanted=wanted)
        if is_causal:
            self._read = [len(text) for text in texts]
        return features, last[:, 0]


def _rows_of(encoder_out: dict[str, Any], rows: Tensor | None) -> dict[str, Any]:
    """What an encoder returned for these rows; None: all."""
    if rows is None:
        return encoder_out
    return {
        "encoder_out": [states[:, rows] for states in encoder_out["encoder_out"]],  # S x B x C
        "encoder_padding_mask": [mask[rows] for mask in encoder_out["encoder_padding_mask"]],
        "encoder_embedding": [embedding[rows] for embedding in encoder_out["encoder_embedding"]],
    }
