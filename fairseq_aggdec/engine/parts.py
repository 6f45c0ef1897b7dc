"""The parts of a fairseq Transformer decoder: weights, and what they compute without the memory of a batch."""

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.plain.layers import Norm, Positions
from fairseq_aggdec.engine.plain.products import Product
from fairseq_aggdec.engine.weights import head_by_head, width_of
from fairseq_aggdec.models.transformer_parts import layers_of


class Parts:
    """Embeddings, layers and projections of a decoder. What its passes read and write is in `memory.Memory`."""

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        backend: PlainBackend,
        extra_embeddings: Tensor | None,
    ) -> None:
        """
        Args:
            decoder: its present weights are copied where projections are fused or weights prepacked.
            backend: computes the layers.
            extra_embeddings: N x D, scaled embeddings of extra symbols, with indices from V on, such as the drafter's
                mask token.
        """
        self.decoder = decoder
        self.backend = backend
        self._words = decoder.embed_tokens.weight.detach()
        self.device = self._words.device

        # from tokens to the first layer
        self.extra_embeddings: Tensor | None = None
        if extra_embeddings is not None:
            self.extra_embeddings = extra_embeddings.detach()
        self.positions: Positions | None = None
        if decoder.embed_positions is not None:
            self.positions = Positions(decoder.embed_positions, self._words)
        self._in = _optional(decoder.project_in_dim, backend)
        self._norm = Norm(decoder.layernorm_embedding)
        self.adds_embeddings = (
            decoder.project_in_dim is None and decoder.layernorm_embedding is None
        )
        """whether the input of the first layer is a sum of embeddings"""
        self._first = getattr(decoder, "first_input", None)
        self._eos = decoder.dictionary.eos()
        self._embedding = None
        if self.adds_embeddings:
            self._embedding = backend.embedding(
                decoder, self.positions, extra_embeddings
            )

        # the layers
        first = decoder.layers[0].self_attn
        self.sizes: tuple[int, int, int] = (
            len(decoder.layers),
            first.num_heads,
            first.head_dim,
        )
        """how many layers, heads, and elements of a head there are"""
        self.layers = backend.decoder_layers(decoder)
        self._cross = _keys_and_values(decoder, backend)

        # from the last layer to logits
        self._out = _optional(decoder.project_out_dim, backend)
        self.symbols: int = decoder.output_projection.weight.size(0)
        self.vocabulary = backend.fused(decoder.output_projection)
        """the output projection; a drafter may replace it by one of fewer symbols"""
        self.first_head: Product | None = None
        """computes the input of `vocabulary` from features, ... x D -> ... x 1 x D; None: they are the input"""

    def keys_and_values(self, states: Tensor) -> Tensor:
        """All layers' keys and values of an encoder's output, B x S x C -> layers x B x H x S x 2D/H."""
        layers, heads, _ = self.sizes
        found = self._cross(states)  # B x S x (layers 2D)
        return found.unflatten(-1, (layers, heads, -1)).permute(2, 0, 3, 1, 4)

    def inputs(self, tokens: Tensor) -> Tensor:
        """What is read for tokens: the symbol with which a text begins may be another than EOS."""
        if self._first is None:
            return tokens
        return tokens.masked_fill(tokens.eq(self._eos), self._first)

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled token embeddings without positions, ... -> ... x D."""
        tokens = self.inputs(tokens)
        if self.extra_embeddings is None:
            return self._embed(tokens)
        extra = tokens - self._words.size(0)  # places among the extra symbols
        is_word = extra < 0
        words = self._embed(tokens.where(is_word, 0))
        extra = self.extra_embeddings[extra.clamp(min=0)]
        return words.where(is_word[..., None], extra)

    def _embed(self, tokens: Tensor) -> Tensor:
        x = F.embedding(tokens, self._words)
        return self._in(self.decoder.embed_scale * x)

    def read(
        self,
        tokens: Tensor,
        positions: Tensor | range,
        end: int,
    ) -> Tensor:
        """The input of the first layer, ... -> ... x D, for tokens at these positions, all below `end`."""
        if self._embedding is not None:
            return self._embedding(self.inputs(tokens), positions, end)
        return self.placed(self.embed(tokens), positions, end)

    def placed(self, x: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """The input of the first layer for embeddings, ... x D, at these positions, all below `end`."""
        table = self.positions
        if table is None:
            return self._norm(x)
        if isinstance(positions, range):
            return self._norm(x + table.span(positions.start, end))
        return self._norm(x + table.look_up(positions, end))

    def features(self, x: Tensor) -> Tensor:
        """Decoder output before the vocabulary projection, from the last layer's output."""
        return self._out(x)

    def project(self, features: Tensor) -> Tensor:
        """Logits of features, ... x D -> ... x V."""
        if self.first_head is not None:
            features = self.first_head(features).squeeze(-2)
        return self.vocabulary(features)

    def scores(self, features: Tensor, temperature: float) -> Tensor:
        """Logits over the temperature, ... x D -> ... x V."""
        logits = self.project(features)
        return logits if temperature == 1.0 else logits / temperature


def _keys_and_values(decoder: TransformerDecoderBase, backend: PlainBackend) -> Product:
    """All layers' keys and values of the source in one product, ... x C -> ... x (layers 2D), grouped by head."""
    projections: list[nn.Linear] = []
    order = []
    for index, layer in enumerate(layers_of(decoder)):
        attention = layer.encoder_attn
        projections += [attention.k_proj, attention.v_proj]
        order.append(2 * width_of(attention) * index + head_by_head(attention))
    return backend.fused(*projections, order=torch.cat(order))


def _optional(projection: nn.Linear | None, backend: PlainBackend) -> Product:
    """A projection that not every model has."""
    return nn.Identity() if projection is None else backend.fused(projection)
