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

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Order, Ragged
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.choose_backend import choose_backend
from fairseq_aggdec.engine.plain.choice import choose_block, entries_behind
from fairseq_aggdec.engine.plain.layers import KVCache, Norm, Positions, keep_rows
from fairseq_aggdec.engine.plain.products import Product
from fairseq_aggdec.engine.supported_models import STOCK_DECODERS, unsupported_decoder
from fairseq_aggdec.engine.weights import head_by_head
from fairseq_aggdec.models.transformer_parts import layers_of

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
        extra_embeddings: Tensor | None = None,
        backend: Backend | None = None,
    ) -> None:
        """
        Args:
            decoder: its present weights are copied where projections are fused or weights prepacked.
            kinds: see `unsupported_decoder`.
            arithmetic: the arithmetic of the layers.
            extra_embeddings: N x D, scaled embeddings of extra symbols, with indices from V on, such as the drafter's
                mask token. Blocks can contain these symbols if `reads_extra_embeddings`.
            backend: the backend; None: the fastest for this device, by `choose_backend`.

        Raises:
            ValueError: the engine does not support the decoder.
            AggdecError: the precision is not available on the decoder's device.
        """
        reason = unsupported_decoder(decoder, kinds)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._decoder = decoder
        words = decoder.embed_tokens.weight
        self.backend = backend or choose_backend(words, arithmetic, decoder.layers[0].activation_fn)
        """the backend that computes the layers"""
        backend = self.backend
        self._layers = backend.decoder_layers(decoder)
        self._heads = decoder.layers[0].self_attn.num_heads
        self._cross_kv = _keys_and_values(decoder, backend)
        self._embedding_norm = None if decoder.layernorm_embedding is None else Norm(decoder.layernorm_embedding)
        self._cache = KVCache(len(decoder.layers), self._heads, decoder.layers[0].self_attn.head_dim)
        embeddings = decoder.embed_positions
        self._positions = None if embeddings is None else Positions(embeddings, words)
        self._vocabulary = backend.fused(decoder.output_projection)
        self._in, self._out = (
            None if projection is None else backend.fused(projection)
            for projection in (decoder.project_in_dim, decoder.project_out_dim)
        )
        self._embedding = backend.embedding(decoder, self._positions, extra_embeddings)
        self.reads_extra_embeddings = self._embedding is not None and extra_embeddings is not None
        """whether blocks can contain the symbols of `extra_embeddings`; otherwise the caller computes `embeddings`"""
        self.can_be_ragged = not backend.padding_is_free
        """whether the padding of a block is left out"""
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
        # a mask without padding is dropped where reading it costs no synchronisation
        if len(masks) > 0 and (self.backend.reads_wait or bool(masks[0].any())):
            # a contiguous copy: rows are removed in place, and the kernels read contiguous memory
            self._padding = masks[0].clone(memory_format=torch.contiguous_format)
        self._cross = self._cross_of(memory).contiguous()
        self._layers.attend_to(self._cross, self._padding)
        self._cache.start(memory.size(0), memory)

    def _cross_of(self, memory: Tensor) -> Tensor:
        """The keys and values of an encoder's output, B x S x C -> layers x B x H x S x 2D/H."""
        by_head = self._cross_kv(memory).unflatten(-1, (self._cache.memory.size(0), self._heads, -1))
        return by_head.permute(2, 0, 3, 1, 4)

    def verify(self, block: Block, rules: SearchRules, ranks: int = 0, sequence: Tensor | None = None) -> Chosen:
        return choose_block(self.score(block), self.backend.choice, block, rules, ranks, sequence)

    def verify_tree(
        self, block: TreeBlock, rules: SearchRules, count: int, sequences: Tensor | None = None
    ) -> Iterator[Entries]:
        return entries_behind(self.score_tree(block), self.backend.choice, block, rules, count, sequences)

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block, and return the logits after its tokens over the temperature, in chunks of n x V."""
        ragged = block.ragged
        padding = len(ragged.widths) * ragged.width - ragged.size
        if self.can_be_ragged and padding > _MAX_PADDING_READ:
            features = self.features(block.tokens, block.starts, block.last_start, ragged=ragged)
        else:
            features = ragged.pack(self.features(block.tokens, block.starts, block.last_start))
        yield from self._logits(features)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """Read a block of a tree; as `score`."""
        block = block.on(self._cross.device)
        x = self._read(block.tokens, block.positions, block.last_position + 1)
        self._cache.reserve(block.end)
        x = self._layers.tree(x, self._cache, block.positions, block.paths, block.end, block.ragged)
        yield from self._logits(self._projected(x))

    def _logits(self, features: Tensor) -> Iterator[Tensor]:
        is_one = self.backend.reads_wait or features.size(0) <= _LOGITS_CHUNK
        for part in (features,) if is_one else features.split(_LOGITS_CHUNK):
            yield self._scores(part)

    def _scores(self, features: Tensor) -> Tensor:
        """Logits over the temperature, ... x D -> ... x V."""
        logits = self.project(features)
        return logits if self._temperature == 1.0 else logits / self._temperature

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
        """Decoder output before the vocabulary projection, B x W x D, or fewer columns; ragged, N x D.

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
        x = self._layers.block(x, self._cache, starts[:, None], end, ragged=ragged, reach=reach, wanted=wanted)
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

    def keep(self, order: Order) -> None:
        self._cache.keep(order)
        self._cross = keep_rows(self._cross, order, dim=1)
        if self._padding is not None:
            self._padding = keep_rows(self._padding, order)
        self._layers.attend_to(self._cross, self._padding)

    def project(self, features: Tensor) -> Tensor:
        """Logits of features, ... x D -> ... x V."""
        return self._vocabulary(features)

    def restrict_vocabulary(self, few: Product) -> None:
        """Restrict the output vocabulary to the symbols of this projection, numbered from 0, from now on."""
        self._vocabulary = few

    def embed(self, block: Tensor) -> Tensor:
        """Scaled token embeddings without positions, ... -> ... x D."""
        decoder = self._decoder
        x = decoder.embed_scale * F.embedding(block, decoder.embed_tokens.weight)
        return x if self._in is None else self._in(x)


def _keys_and_values(decoder: TransformerDecoderBase, backend: Backend) -> Product:
    """All layers' keys and values of the source in one product, ... x C -> ... x (layers 2D), grouped by head."""
    crosses = [layer.encoder_attn for layer in layers_of(decoder)]
    order = torch.cat(
        [2 * attention.embed_dim * number + head_by_head(attention) for number, attention in enumerate(crosses)]
    )
    projections = [projection for attention in crosses for projection in (attention.k_proj, attention.v_proj)]
    return backend.fused(*projections, order=order)
