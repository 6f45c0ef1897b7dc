"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder with an incremental state reads one token and drops the causal mask. This one reads any number of
tokens at any position of each row, with the same weights.
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

_LOGITS_CHUNK = 128
"""number of tokens whose logits are computed at once; the memory of all logits would be fetched from the system and
returned for each block, which takes longer than the arithmetic"""
_MAX_PADDING_READ = 4
"""number of padding tokens that are read along, since to leave them out would take longer"""


class BlockDecoder(Verifier, TreeVerifier):
    """A `roles.Verifier` and a `TreeVerifier` over a fairseq `TransformerDecoder`, with a cache.

    A batch is read either in blocks or in trees.
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
            decoder: its present weights are copied where projections are fused or weights prepacked (see `Linear`).
            kinds: see `unsupported_decoder`.
            arithmetic: the arithmetic of the layers.
            further: N x D, scaled embeddings of symbols numbered from V on, such as a drafter's mask. Blocks can
                contain these symbols if `reads_further`.

        Raises:
            ValueError: the engine does not support the decoder.
            AggdecError: the precision is not available on the decoder's device.
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
        """whether `native` runs the layers, with the same bits in all shapes"""
        self.narrow = isinstance(self._layers, DecoderStack) and self._layers.narrow
        """whether `native` stores their weights in 16 bits"""
        self._embedding = embedding(decoder, self._positions, further) if self.by_kernels else None
        self.reads_further = self._embedding is not None and further is not None
        """whether blocks can contain the symbols of `further`; otherwise the caller computes `embeddings`"""
        in_fixed_shapes = arithmetic.fixed_shapes and not self.by_kernels
        self.can_be_ragged = not in_fixed_shapes and decoder.embed_tokens.weight.device.type == "cpu"
        """whether the padding of a block is left out; on a GPU a hundred tokens take the time of one"""
        self.symbols, self.dim = decoder.output_projection.weight.shape
        self._temperature = 1.0
        self._cross = torch.empty(0)  # keys and values of the encoder output: layers x B x H x S x 2D/H
        self._padding: Tensor | None = None  # B x S, the hidden positions of the encoder output

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Start a new batch.

        Args:
            encoder_out: fairseq's, `encoder_out["encoder_out"][0]` of S x B x C.
            temperature: divides the logits that `score` returns.
        """
        self._temperature = temperature
        memory = encoder_out["encoder_out"][0].detach().transpose(0, 1)  # B x S x C
        masks = encoder_out["encoder_padding_mask"]
        self._padding = None
        # a mask without padding is dropped on a CPU; on a GPU the look at it would cost a synchronisation
        if len(masks) > 0 and (masks[0].is_cuda or bool(masks[0].any())):
            # a contiguous copy: rows are removed in place, and the kernels read contiguous memory
            self._padding = masks[0].clone(memory_format=torch.contiguous_format)
        by_head = self._cross_kv(memory).unflatten(-1, (self._cache.memory.size(0), self._heads, -1))
        self._cross = by_head.permute(2, 0, 3, 1, 4).contiguous()
        self._layers.attend_to(self._cross, self._padding)
        self._cache.start(memory.size(0), memory)

    def score(self, block: Block) -> Iterator[Tensor]:
        ragged = block.ragged
        padding = block.tokens.numel() - ragged.size
        if self.can_be_ragged and padding > _MAX_PADDING_READ:
            features = self.features(block.tokens, block.starts, block.last_start, ragged=ragged)
        else:
            features = ragged.pack(self.features(block.tokens, block.starts, block.last_start))
        yield from self._logits(features)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        x = self._read(block.tokens, block.positions, block.last_position + 1)
        self._cache.reserve(block.end)
        yield from self._logits(self._projected(self._layers.tree(x, self._cache, block)))

    def _logits(self, features: Tensor) -> Iterator[Tensor]:
        is_one = features.is_cuda or features.size(0) <= _LOGITS_CHUNK
        for part in (features,) if is_one else features.split(_LOGITS_CHUNK):
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
            block: B x W tokens; unused with `embeddings`.
            starts: B, the position of each row's first block token.
            last_start: the largest entry of `starts`, on the host.
            reach: B x W, the last position that each query attends to, at most `last_start` + W - 1; None: its own
                (causal).
            embeddings: B x W x D, replaces the tokens' own embeddings before positions are added (scaled, after
                `project_in_dim`).
            wanted: the columns to return, B x k; None: all. For others the last layer computes keys and values only.
            ragged: the valid entries of the block; None: all.

        Returns:
            B x W x D, or fewer columns; ragged, N x D.
        """
        read = block if embeddings is None else embeddings
        assert read is not None
        width = read.size(1) if ragged is None else ragged.width
        end = last_start + width
        positions: range | Tensor = range(last_start, end)  # of one row, on the host
        if ragged is not None:
            read, positions = ragged.pack(read), starts[ragged.rows] + ragged.columns
        elif starts.size(0) > 1:
            positions = starts[:, None] + torch.arange(width, device=starts.device)
        x = self._read(read, positions, end) if embeddings is None else self._placed(read, positions, end)
        self._cache.reserve(end)
        x = self._layers.block(x, self._cache, starts, last_start, ragged=ragged, reach=reach, wanted=wanted)
        return self._projected(x)

    def _read(self, tokens: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """The input of the first layer, ... -> ... x D, for tokens at these positions, all below `end`."""
        if self._embedding is not None:
            return self._embedding(tokens, positions, end)
        return self._placed(self.embed(tokens), positions, end)

    def _placed(self, x: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """The input of the first layer for embeddings, ... x D, at these positions, all below `end`."""
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
        """Logits of features, ... x D -> ... x V."""
        return self._vocabulary(features)

    def embed(self, block: Tensor) -> Tensor:
        """Scaled token embeddings without positions, ... -> ... x D."""
        decoder = self._decoder
        x = decoder.embed_scale * F.embedding(block, decoder.embed_tokens.weight)
        return x if self._in is None else self._in(x)


def _keys_and_values(decoder: TransformerDecoderBase, arithmetic: Arithmetic) -> Linear | PackedProduct:
    """All layers' keys and values of the source in one product, ... x C -> ... x (layers 2D), grouped by head."""
    crosses = [layer.encoder_attn for layer in layers_of(decoder)]
    order = torch.cat(
        [2 * attention.embed_dim * number + head_by_head(attention) for number, attention in enumerate(crosses)]
    )
    projections = [projection for attention in crosses for projection in (attention.k_proj, attention.v_proj)]
    return fused(*projections, arithmetic=arithmetic, order=order)
