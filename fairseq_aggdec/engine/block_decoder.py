"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder, given an incremental state, reads one token and drops the causal mask; this one reads any number
of tokens at any position per row, over the same weights. Nothing is retrained and the checkpoint is untouched.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Block, Ragged, Verifier
from fairseq_aggdec.engine.arithmetic.linear import Linear, fused
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.arithmetic.weights import head_by_head
from fairseq_aggdec.engine.layers import DecoderLayers, KVCache, Norm, Positions, keep_rows, moved_rows
from fairseq_aggdec.engine.native.modules import DecoderStack, PackedProduct, decoder_stack, embedding
from fairseq_aggdec.engine.supported_models import STOCK_DECODERS, unsupported_decoder
from fairseq_aggdec.models.layer_list import layers_of

_PART = 128
"""tokens whose logits are made at once: the memory of some thousand, many times that of the model, would be taken from
the system and given back block by block, which takes longer than the arithmetic"""
_LITTLE_PADDING = 4
"""tokens that are read in the time it takes to leave them out"""


class BlockDecoder(Verifier, TreeVerifier):
    """A `roles.Verifier` over a fairseq `TransformerDecoder`: cached, any block width, positions per row.

    A `TreeVerifier` too: what it reads of a batch is either blocks or trees.
    """

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        kinds: tuple[type, ...] = STOCK_DECODERS,
        arithmetic: Arithmetic = AS_THE_MODEL,
        further: Tensor | None = None,
    ) -> None:
        """
        Args:
            decoder: its weights are taken as they are now: attention projections are fused into copies, and on a CPU
                all are prepacked (see `Linear`).
            kinds: see `unsupported_decoder`.
            arithmetic: of the layers.
            further: N x D, embeddings, scaled, for the numbers that follow those of the vocabulary's V symbols, such as
                that of a drafter's mask. A block can hold these numbers where `reads_further` says so.

        Raises:
            ValueError: the decoder has something that this engine lacks.
            AggdecError: the precision is not to be had on the decoder's device.
        """
        reason = unsupported_decoder(decoder, kinds)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._decoder = decoder
        self._layers = decoder_stack(decoder, arithmetic) or DecoderLayers(decoder, arithmetic)
        self._heads = decoder.layers[0].self_attn.num_heads
        self._cross_kv = _keys_and_values(decoder, arithmetic)
        self._embedding_norm = None if decoder.layernorm_embedding is None else Norm(decoder.layernorm_embedding)
        self._cache = KVCache(len(decoder.layers), self._heads, decoder.layers[0].self_attn.head_dim)
        embeddings = decoder.embed_positions
        self._positions = None if embeddings is None else Positions(embeddings, decoder.embed_tokens.weight)
        self._vocabulary = fused(decoder.output_projection, arithmetic=arithmetic)
        self._in, self._out = (
            None if projection is None else fused(projection, arithmetic=arithmetic)
            for projection in (decoder.project_in_dim, decoder.project_out_dim)
        )
        self.by_kernels = not isinstance(self._layers, DecoderLayers)
        """whether `native` runs the layers; its results have the same bits in all shapes"""
        self.narrow = isinstance(self._layers, DecoderStack) and self._layers.narrow
        """whether it keeps their weights in 16 bits"""
        self._embedding = embedding(decoder, self._positions, further) if self.by_kernels else None
        self.reads_further = self._embedding is not None and further is not None
        """whether a block can hold the numbers of `further`; otherwise the caller makes `embeddings`"""
        in_fixed_shapes = arithmetic.fixed_shapes and not self.by_kernels
        self.can_be_ragged = not in_fixed_shapes and decoder.embed_tokens.weight.device.type == "cpu"
        """whether padding of a block is left out; a GPU reads some hundred tokens in the time of one"""
        self.symbols, self.dim = decoder.output_projection.weight.shape
        self._temperature = 1.0
        self._cross = torch.empty(0)  # keys and values of the encoder output: layers x B x H x S x 2D/H
        self._padding: Tensor | None = None  # B x S, what no token sees of it

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Take a new batch.

        Args:
            encoder_out: fairseq's, `encoder_out["encoder_out"][0]` of S x B x C.
            temperature: divides the logits that `score` returns.
        """
        self._temperature = temperature
        memory = encoder_out["encoder_out"][0].detach().transpose(0, 1)  # B x S x C
        masks = encoder_out["encoder_padding_mask"]
        self._padding = None
        # on a CPU a look at the mask is free and often saves it; on a GPU it would cost a synchronisation
        if len(masks) > 0 and (masks[0].is_cuda or bool(masks[0].any())):
            # rows that leave are taken out in place, and the kernels read it from end to end
            self._padding = masks[0].clone(memory_format=torch.contiguous_format)
        by_head = self._cross_kv(memory).unflatten(-1, (self._cache.memory.size(0), self._heads, -1))
        self._cross = by_head.permute(2, 0, 3, 1, 4).contiguous()
        self._layers.attend_to(self._cross, self._padding)
        self._cache.start(memory.size(0), memory)

    def score(self, block: Block) -> Iterator[Tensor]:
        """See `roles.Verifier.score`."""
        ragged = block.ragged
        padding = block.tokens.numel() - ragged.size
        if self.can_be_ragged and padding > _LITTLE_PADDING:
            features = self.features(block.tokens, block.starts, block.last_start, ragged=ragged)
        else:
            features = ragged.pack(self.features(block.tokens, block.starts, block.last_start))
        yield from self._logits(features)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """See `decoding.beam.roles.TreeVerifier.score_tree`."""
        x = self._read(block.tokens, block.positions, block.last_position + 1)
        self._cache.reserve(block.end)
        yield from self._logits(self._projected(self._layers.tree(x, self._cache, block)))

    def _logits(self, features: Tensor) -> Iterator[Tensor]:
        is_one = features.is_cuda or features.size(0) <= _PART
        for part in (features,) if is_one else features.split(_PART):
            logits = self.project(part)
            yield logits if self._temperature == 1.0 else logits / self._temperature

    def features(
        self,
        block: Tensor | None,
        starts: Tensor,
        last_start: int,
        *,
        reach: Tensor | None = None,
        embeddings: Tensor | None = None,
        wanted: Tensor | None = None,
        ragged: Ragged | None = None,
    ) -> Tensor:
        """Decoder output before the vocabulary projection.

        Args:
            block: B x W tokens; not looked at where there are `embeddings`.
            starts: B, the position of each row's first block token.
            last_start: the largest entry of `starts`, as the host knows it.
            reach: B x W, the last position that each query sees, at most `last_start` + W - 1; None for its own
                (causal).
            embeddings: B x W x D, read in place of the tokens' own embeddings: what the decoder has before it adds
                positions (scaled, through `project_in_dim` where there is one).
            wanted: the columns to return, B x k; None for all. Of the others the last layer makes
                keys and values only.
            ragged: of the block: what stands behind a row's tokens is not read. None: all is.

        Returns:
            B x W x D, or fewer columns; ragged, N x D.
        """
        read = block if embeddings is None else embeddings
        assert read is not None
        width = read.size(1) if ragged is None else ragged.width
        end = last_start + width
        positions: range | Tensor = range(last_start, end)  # of one row the host knows them
        if ragged is not None:
            read, positions = ragged.pack(read), starts[ragged.rows] + ragged.columns
        elif starts.size(0) > 1:
            positions = starts[:, None] + torch.arange(width, device=starts.device)
        x = self._read(read, positions, end) if embeddings is None else self._placed(read, positions, end)
        self._cache.reserve(end)
        cache = self._cache
        return self._projected(
            self._layers.block(x, cache, starts, last_start, ragged=ragged, reach=reach, wanted=wanted)
        )

    def _read(self, tokens: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """What the first layer reads of tokens, ... -> ... x D, at these positions, all below `end`."""
        if self._embedding is not None:
            return self._embedding(tokens, positions, end)
        return self._placed(self.embed(tokens), positions, end)

    def _placed(self, x: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """Embeddings, ... x D, as the first layer reads them at these positions, all below `end`."""
        table = self._positions
        if table is not None:
            x = x + (
                table.look_up(positions, end) if isinstance(positions, Tensor) else table.span(positions.start, end)
            )
        return x if self._embedding_norm is None else self._embedding_norm(x)

    def _projected(self, x: Tensor) -> Tensor:
        return x if self._out is None else self._out(x)

    def keep(self, rows: Tensor) -> None:
        moved = moved_rows(rows)
        self._cache.keep(rows, moved)
        self._cross = keep_rows(self._cross, rows, moved, dim=1)
        if self._padding is not None:
            self._padding = keep_rows(self._padding, rows, moved)
        self._layers.attend_to(self._cross, self._padding)

    def project(self, features: Tensor) -> Tensor:
        """Logits of any features, ... x D -> ... x V."""
        return self._vocabulary(features)

    def embed(self, block: Tensor) -> Tensor:
        """Token embeddings as the layers read them, scaled, without positions: ... -> ... x D."""
        decoder = self._decoder
        x = decoder.embed_scale * F.embedding(block, decoder.embed_tokens.weight)
        return x if self._in is None else self._in(x)


def _keys_and_values(decoder: TransformerDecoderBase, arithmetic: Arithmetic) -> Linear | PackedProduct:
    """What all layers have of the source, in one product: ... x C -> ... x (layers 2D), each layer's head by head."""
    crosses = [layer.encoder_attn for layer in layers_of(decoder)]
    order = torch.cat(
        [2 * attention.embed_dim * number + head_by_head(attention) for number, attention in enumerate(crosses)]
    )
    projections = [projection for attention in crosses for projection in (attention.k_proj, attention.v_proj)]
    return fused(*projections, arithmetic=arithmetic, order=order)
