"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder, given an incremental state, reads one token and drops the causal mask; this one reads any number
of tokens at any position per row, over the same weights. Nothing is retrained and the checkpoint is untouched.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.loop import Verifier
from fairseq_aggdec.decoding.packing import Packing
from fairseq_aggdec.engine.bit_exact import exact_keys, exact_rows
from fairseq_aggdec.engine.decoder_layer import BlockShape, Columns, DecoderLayer, head_by_head
from fairseq_aggdec.engine.fixed_steps import FixedMemory, FixedSteps
from fairseq_aggdec.engine.kv_cache import KVCache, keep_rows
from fairseq_aggdec.engine.layers import Norm, Positions, hiding
from fairseq_aggdec.engine.linear import Linear, fused, rounded_rows
from fairseq_aggdec.engine.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.supported_decoders import STOCK_DECODERS, unsupported_reason

_PART = 128
"""tokens whose logits are made at once: the memory of some thousand, many times that of the model, would be taken from
the system and given back block by block, which takes longer than the arithmetic"""


class BlockDecoder(Verifier):
    """A `loop.Verifier` over a fairseq `TransformerDecoder`: cached, any block width, positions per row."""

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        kinds: tuple[type, ...] = STOCK_DECODERS,
        arithmetic: Arithmetic = AS_THE_MODEL,
    ) -> None:
        """
        Args:
            decoder: its weights are taken as they are now: attention projections are fused into copies, and on a CPU
                all are rearranged (see `Linear`).
            kinds: see `unsupported_reason`.
            arithmetic: of the layers.

        Raises:
            ValueError: the decoder has something that this engine lacks.
            AggdecError: the precision, or the recording of steps, is not to be had on the decoder's device.
        """
        reason = unsupported_reason(decoder, kinds)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._decoder = decoder
        self._read_from = (decoder.embed_tokens.weight.device, decoder.embed_tokens.weight.dtype)
        self._layers = [DecoderLayer(layer, arithmetic) for layer in decoder.layers]
        self._heads = decoder.layers[0].self_attn.num_heads
        self._cross_kv = _keys_and_values(decoder, arithmetic)
        self._embedding_norm = None if decoder.layernorm_embedding is None else Norm(decoder.layernorm_embedding)
        self._final_norm = None if decoder.layer_norm is None else Norm(decoder.layer_norm)
        self._cache = KVCache(len(self._layers), self._heads, decoder.layers[0].self_attn.head_dim)
        embeddings = decoder.embed_positions
        self._positions = None if embeddings is None else Positions(embeddings, decoder.embed_tokens.weight)
        self._vocabulary = fused(decoder.output_projection, arithmetic=arithmetic)
        self._fixed_shapes = arithmetic.fixed_shapes
        self.fixed_steps = None if arithmetic.capture is None else self._fixed_steps(arithmetic)
        """what records and repeats steps; None: they are computed as they come"""
        self.packs = not self._fixed_shapes and self.fixed_steps is None
        """see `loop.Verifier.packs`"""
        self.symbols, self.dim = decoder.output_projection.weight.shape
        self._temperature = 1.0
        self._causal = torch.empty(0)
        self._cross = torch.empty(0)  # keys and values of the encoder output: layers x B x H x S x 2D/H
        self._cross_mask: Tensor | None = None  # B x 1 x 1 x S, additive

    def is_current(self) -> bool:
        """Whether the model still has the device and precision it was read with."""
        weight = self._decoder.embed_tokens.weight
        return (weight.device, weight.dtype) == self._read_from

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Take a new batch.

        Args:
            encoder_out: fairseq's, `encoder_out["encoder_out"][0]` of S x B x C.
            temperature: divides the logits that `score` returns.
        """
        self._temperature = temperature
        memory = encoder_out["encoder_out"][0].detach().transpose(0, 1)  # B x S x C
        masks = encoder_out["encoder_padding_mask"]
        if self.fixed_steps is not None:
            hidden = masks[0] if len(masks) > 0 else None
            self._cross, self._cross_mask = self.fixed_steps.start(self._cross_by_head(memory), hidden)
            return
        self._cross_mask = None
        # on a CPU a look at the mask is free and often saves it; on a GPU it would cost a synchronisation
        if len(masks) > 0 and (masks[0].is_cuda or bool(masks[0].any())):
            self._cross_mask = hiding(masks[0], memory)[:, None, None]
        self._cross = self._cross_by_head(memory).contiguous()
        self._cache.start(memory.size(0), memory)

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """See `loop.Verifier.score`."""
        width = block.size(1)
        if self.fixed_steps is not None:
            results = self.fixed_steps.run(self._step, block, (starts,), longest)
            if results is not None:
                features, logits = results
                self.note(features[:, :width], starts)
                return self._tempered(logits[:, :width])
        logits = self._tempered(self.project(self.features(self._widened(block), starts, longest)))
        return logits if logits.size(1) == width else logits[:, :width]

    def score_packed(self, block: Tensor, starts: Tensor, longest: int, packing: Packing) -> Tensor:
        """See `loop.Verifier.score_packed`."""
        return self._tempered(self.project(self.features(block, starts, longest, packing=packing)))

    def score_in_parts(
        self, block: Tensor, starts: Tensor, longest: int, packing: Packing | None = None
    ) -> Iterator[Tensor]:
        """See `loop.Verifier.score_in_parts`."""
        rows, width = block.shape
        tokens = rows * width if packing is None else packing.rows.size(0)
        if tokens <= _PART or block.is_cuda or self._fixed_shapes or self.fixed_steps is not None:
            yield from super().score_in_parts(block, starts, longest, packing)
        elif packing is None:
            features = self.features(self._widened(block), starts, longest)[:, :width]
            for part in features.split(max(1, _PART // rows), dim=1):
                yield self._tempered(self.project(part.contiguous()))
        else:
            for part in self.features(block, starts, longest, packing=packing).split(_PART):
                yield self._tempered(self.project(part))

    def _widened(self, block: Tensor) -> Tensor:
        """The block as wide as it is best computed: what is read behind it is overwritten by the next one."""
        computed = self.computed_width(block.size(1), block.size(0))
        if computed == block.size(1):
            return block
        return F.pad(block, (0, computed - block.size(1)), value=self._decoder.padding_idx)

    def note(self, features: Tensor, starts: Tensor) -> None:
        """Told of every block that is read: its features, B x W x D, until the next one, and its first positions, B."""

    def computed_width(self, width: int, batch_size: int) -> int:
        """How wide a block is best made where `width` columns are wanted."""
        if self._vocabulary.rounds_rows and batch_size == 1:
            width = rounded_rows(width)
        return exact_rows(width) if self._fixed_shapes else width

    def computed_keys(self, end: int) -> int:
        """How many positions are attended to where those below `end` can be seen."""
        return exact_keys(end) if self._fixed_shapes else end

    def features(
        self,
        block: Tensor | None,
        starts: Tensor,
        longest: int,
        *,
        reach: Tensor | None = None,
        mask: Tensor | None = None,
        embeddings: Tensor | None = None,
        wanted: Columns | None = None,
        packing: Packing | None = None,
        fixed: FixedMemory | None = None,
    ) -> Tensor:
        """Decoder output before the vocabulary projection.

        Args:
            block, starts, longest: see `loop.Verifier.score`; no block where there are `embeddings`.
            reach: B x W, the last position that each query sees, at most `longest` + W - 1; None for its own (causal).
            mask: W x L, additive, in place of `reach`; L from `computed_keys`.
            embeddings: B x W x D, read in place of the tokens' own embeddings: what the decoder has before it adds
                positions (scaled, through `project_in_dim` where there is one).
            wanted: the columns to return, a slice or B x k of them; None for all. Of the others the last layer makes
                keys and values only.
            packing: of the block: what stands behind a row's tokens is not read. None: all is.
            fixed: what to read and write in place of the batch's own, in a step that is recorded: then nothing depends
                on `longest`, which is L - W.

        Returns:
            B x W x D, or fewer columns; packed, N x D.
        """
        decoder = self._decoder
        x = embeddings
        if x is None:
            assert block is not None
            x = self.embed(block if packing is None else packing.pack(block))
        width = x.size(1) if packing is None else packing.width
        end = longest + width
        positions = own = None  # B x W, and those of `x`; of one row the host knows them
        if starts.size(0) > 1 or packing is not None or fixed is not None:
            own = positions = starts[:, None] + torch.arange(width, device=x.device)
            if packing is not None:
                own = packing.pack(positions)
        if self._positions is not None:
            x = x + (self._positions.span(longest, end) if own is None else self._positions.look_up(own, end))
        if self._embedding_norm is not None:
            x = self._embedding_norm(x)

        cache, cross, cross_mask = self._cache, self._cross, self._cross_mask
        keys = self.computed_keys(end)
        if fixed is None:
            cache.reserve(keys)
        else:
            cache, cross, cross_mask, keys = fixed.cache, fixed.cross, fixed.cross_mask, fixed.keys
        if reach is not None:
            mask = _hide_behind(reach, keys, x)
        elif mask is None:
            mask = self._self_mask(positions, longest, end, keys, x)
        places = None if own is None else cache.places(own, None if packing is None else packing.rows)
        shape = BlockShape(longest, keys, places, mask, packing)
        last = len(self._layers) - 1
        for number, layer in enumerate(self._layers):
            columns = wanted if number == last else None
            x = layer(x, shape, cache, number, cross[number], cross_mask, columns)
        if self._final_norm is not None:
            x = self._final_norm(x)
        return x if decoder.project_out_dim is None else decoder.project_out_dim(x)

    def keep(self, rows: Tensor) -> None:
        self._cache.keep(rows)
        self._cross = keep_rows(self._cross, rows, dim=1)
        if self._cross_mask is not None:
            self._cross_mask = keep_rows(self._cross_mask, rows)

    def project(self, features: Tensor) -> Tensor:
        """Logits of any features, ... x D -> ... x V."""
        return self._vocabulary(features)

    def embed(self, block: Tensor) -> Tensor:
        """Token embeddings as the layers read them, scaled, without positions: ... -> ... x D."""
        decoder = self._decoder
        x = decoder.embed_scale * F.embedding(block, decoder.embed_tokens.weight)
        return x if decoder.project_in_dim is None else decoder.project_in_dim(x)

    def _tempered(self, logits: Tensor) -> Tensor:
        return logits if self._temperature == 1.0 else logits / self._temperature

    def _fixed_steps(self, arithmetic: Arithmetic) -> FixedSteps:
        assert arithmetic.capture is not None
        capture = arithmetic.capture(self._read_from[0])
        reach = (lambda end: None) if self._positions is None else self._positions.reaching
        return FixedSteps(capture, self._cache, reach, self.computed_width(1, 2))

    def _step(self, memory: FixedMemory, block: Tensor, numbers: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """`score` as a `fixed_steps.Step`: features and logits."""
        features = self.features(block, numbers[0], memory.keys - block.size(1), fixed=memory)
        return features, self.project(features)

    def _cross_by_head(self, memory: Tensor) -> Tensor:
        """Keys and values of the encoder output: B x S x C -> layers x B x H x S x 2D/H."""
        return self._cross_kv(memory).unflatten(-1, (len(self._layers), self._heads, -1)).permute(2, 0, 3, 1, 4)

    def _self_mask(self, positions: Tensor | None, longest: int, end: int, keys: int, like: Tensor) -> Tensor | None:
        """Additive mask that lets each token see its row up to itself: None, W x L, or B x 1 x W x L; L is `keys`."""
        if positions is not None:
            return _hide_behind(positions, keys, like)
        if keys == longest + 1:
            return None
        if self._causal.size(0) < keys or self._causal.dtype != like.dtype or self._causal.device != like.device:
            size = max(keys, 2 * self._causal.size(0))
            self._causal = torch.full((size, size), -math.inf, dtype=like.dtype, device=like.device).triu_(1)
        return self._causal[longest:end, :keys]


def _hide_behind(last: Tensor, end: int, like: Tensor) -> Tensor:
    """Additive mask, B x 1 x W x `end`, that hides from each query what stands behind its `last` position, B x W."""
    return hiding(torch.arange(end, device=like.device) > last[..., None], like)[:, None]


def _keys_and_values(decoder: TransformerDecoderBase, arithmetic: Arithmetic) -> Linear:
    """What all layers have of the source, in one product: ... x C -> ... x (layers 2D), each layer's head by head."""
    crosses = [layer.encoder_attn for layer in decoder.layers]
    order = torch.cat(
        [2 * attention.embed_dim * number + head_by_head(attention) for number, attention in enumerate(crosses)]
    )
    projections = [projection for attention in crosses for projection in (attention.k_proj, attention.v_proj)]
    return fused(*projections, arithmetic=arithmetic, order=order)
