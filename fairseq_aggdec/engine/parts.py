"""The parts of a fairseq Transformer decoder: weights, and what they compute without the memory of a batch."""

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.plain.layers import Norm, Positions
from fairseq_aggdec.engine.plain.products import Product
from fairseq_aggdec.engine.weights import head_by_head
from fairseq_aggdec.models.transformer_parts import layers_of


class Parts:
    """Embeddings, layers and projections of a decoder. What its passes read and write is in `memory.Memory`."""

    def __init__(self, decoder: TransformerDecoderBase, backend: Backend, extra_embeddings: Tensor | None) -> None:
        """
        Args:
            decoder: its present weights are copied where projections are fused or weights prepacked.
            backend: computes the layers.
            extra_embeddings: N x D, scaled embeddings of extra symbols, with indices from V on, such as the drafter's
                mask token.
        """
        words, first = decoder.embed_tokens.weight, decoder.layers[0].self_attn
        self.decoder, self.backend, self.device = decoder, backend, words.device
        self.extra_embeddings = None if extra_embeddings is None else extra_embeddings.detach()
        self.layers = backend.decoder_layers(decoder)
        self._cross = _keys_and_values(decoder, backend)
        self._norm = None if decoder.layernorm_embedding is None else Norm(decoder.layernorm_embedding)
        self.sizes: tuple[int, int, int] = (len(decoder.layers), first.num_heads, first.head_dim)
        """the numbers of layers, of heads, and of elements of a head"""
        self.symbols: int = decoder.output_projection.weight.size(0)
        self.positions = None if decoder.embed_positions is None else Positions(decoder.embed_positions, words)
        self.vocabulary = backend.fused(decoder.output_projection)
        """the output projection; a drafter may replace it by one of fewer symbols"""
        self.first_head: Product | None = None
        """computes the input of `vocabulary` from features, ... x D -> ... x 1 x D; None: they are the input"""
        self._in, self._out = (
            None if projection is None else backend.fused(projection)
            for projection in (decoder.project_in_dim, decoder.project_out_dim)
        )
        self._embedding = backend.embedding(decoder, self.positions, extra_embeddings)

    def keys_and_values(self, states: Tensor) -> Tensor:
        """All layers' keys and values of an encoder's output, B x S x C -> layers x B x H x S x 2D/H."""
        layers, heads, _ = self.sizes
        return self._cross(states).unflatten(-1, (layers, heads, -1)).permute(2, 0, 3, 1, 4)

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled token embeddings without positions, ... -> ... x D."""
        if self.extra_embeddings is None:
            return self._embed(tokens)
        beyond = tokens - self.decoder.embed_tokens.num_embeddings
        known = self._embed(torch.where(beyond < 0, tokens, 0))
        return torch.where((beyond < 0)[..., None], known, self.extra_embeddings[beyond.clamp(min=0)])

    def _embed(self, tokens: Tensor) -> Tensor:
        x = self.decoder.embed_scale * F.embedding(tokens, self.decoder.embed_tokens.weight)
        return x if self._in is None else self._in(x)

    def read(self, tokens: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """The input of the first layer, ... -> ... x D, for tokens at these positions, all below `end`."""
        if self._embedding is not None:
            return self._embedding(tokens, positions, end)
        return self.placed(self.embed(tokens), positions, end)

    def placed(self, x: Tensor, positions: Tensor | range, end: int) -> Tensor:
        """The input of the first layer for embeddings, ... x D, at these positions, all below `end`."""
        table = self.positions
        if table is not None:
            x = x + (
                table.look_up(positions, end) if isinstance(positions, Tensor) else table.span(positions.start, end)
            )
        return x if self._norm is None else self._norm(x)

    def features(self, x: Tensor) -> Tensor:
        """Decoder output before the vocabulary projection, from the last layer's output."""
        return x if self._out is None else self._out(x)

    def project(self, features: Tensor) -> Tensor:
        """Logits of features, ... x D -> ... x V."""
        return self.vocabulary(features if self.first_head is None else self.first_head(features).squeeze(-2))

    def scores(self, features: Tensor, temperature: float) -> Tensor:
        """Logits over the temperature, ... x D -> ... x V."""
        logits = self.project(features)
        return logits if temperature == 1.0 else logits / temperature


def _keys_and_values(decoder: TransformerDecoderBase, backend: Backend) -> Product:
    """All layers' keys and values of the source in one product, ... x C -> ... x (layers 2D), grouped by head."""
    crosses = [layer.encoder_attn for layer in layers_of(decoder)]
    order = torch.cat(
        [2 * attention.embed_dim * number + head_by_head(attention) for number, attention in enumerate(crosses)]
    )
    projections = [projection for attention in crosses for projection in (attention.k_proj, attention.v_proj)]
    return backend.fused(*projections, order=order)
