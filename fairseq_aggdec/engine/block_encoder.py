"""The forward pass of a stock fairseq Transformer encoder, with the same weights and for inference alone.

fairseq's encoder is built for training: for one sentence it takes longer between the matrix products than in them.
"""

from functools import partial

import torch.nn.functional as F
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic.fixed_shapes import aligned
from fairseq_aggdec.engine.arithmetic.linear import fused
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.layers import Norm, Positions, attend, split_fused, with_residual
from fairseq_aggdec.engine.native.modules import encoder_stack
from fairseq_aggdec.engine.supported_models import unsupported_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.layer_list import layers_of
from fairseq_aggdec.models.masks_and_positions import additive_mask


class _Layer:
    """`TransformerEncoderLayerBase.forward` without dropout, with fused attention projections."""

    def __init__(self, layer: TransformerEncoderLayerBase, arithmetic: Arithmetic) -> None:
        attention, linear = layer.self_attn, partial(fused, arithmetic=arithmetic)
        self._heads = attention.num_heads
        self._qkv = linear(attention.q_proj, attention.k_proj, attention.v_proj)
        self._out = linear(attention.out_proj)
        self._attention_norm = Norm(layer.self_attn_layer_norm)
        self._fc1 = linear(layer.fc1, activation=layer.activation_fn)
        self._fc2 = linear(layer.fc2)
        self._final_norm = Norm(layer.final_layer_norm)
        self._norm_first = layer.normalize_before

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """B x S x C -> B x S x C; `mask`: additive, B x 1 x 1 x S."""

        def attention(x: Tensor) -> Tensor:
            query, keys, values = split_fused(self._qkv(x), 3, self._heads)
            return self._out(attend(query, keys, values, mask))

        x = with_residual(x, attention, self._attention_norm, self._norm_first)
        return with_residual(x, lambda x: self._fc2(self._fc1(x)), self._final_norm, self._norm_first)


class BlockEncoder:
    """Computes the output of a fairseq encoder in evaluation mode."""

    def __init__(
        self, encoder: TransformerEncoderBase, arithmetic: Arithmetic = AS_THE_MODEL, clamps: bool = False
    ) -> None:
        """
        Args:
            encoder: fairseq's, with its present weights.
            arithmetic: the arithmetic of the layers.
            clamps: give tokens behind the last learned position that position, as a drafter may.

        Raises:
            ValueError: the engine does not support the encoder.
            AggdecError: the precision is not available on the encoder's device.
        """
        reason = unsupported_encoder(encoder)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._encoder, self._clamps = encoder, clamps
        embedding = encoder.embed_tokens.weight
        self._stack = encoder_stack(encoder, arithmetic)
        self._layers = [_Layer(layer, arithmetic) for layer in layers_of(encoder) if self._stack is None]
        self._aligns = arithmetic.same_bits
        positions = encoder.embed_positions
        self._positions = None if positions is None else Positions(positions, embedding)
        self._embedding_norm = None if encoder.layernorm_embedding is None else Norm(encoder.layernorm_embedding)
        self._final_norm = None if encoder.layer_norm is None else Norm(encoder.layer_norm)
        self.pad: int = encoder.padding_idx
        self.symbols, self.device, self.dtype = embedding.size(0), embedding.device, embedding.dtype

    def __call__(self, tokens: Tensor) -> dict[str, list[Tensor]]:
        """Encode a batch.

        Args:
            tokens: B x S, padded on either side.

        Returns:
            fairseq's encoder output: `encoder_out` S x B x C, undefined at padding, `encoder_padding_mask` B x S,
            `encoder_embedding` B x S x C; other entries are empty. With `same_bits` S is larger, and all padding is on
            the right.

        Raises:
            AggdecError: a sentence is longer than the encoder's learned positions.
        """
        if self._aligns:
            tokens = aligned(tokens, self.pad)
        encoder, length = self._encoder, tokens.size(1)
        hidden = tokens.eq(encoder.padding_idx)
        # a mask without padding is dropped on a CPU; on a GPU the look at it would cost a synchronisation
        padded = hidden.is_cuda or bool(hidden.any())
        embedding = encoder.embed_scale * F.embedding(tokens, encoder.embed_tokens.weight)
        x = embedding
        if self._positions is not None:
            places = self._positions.reaching(length).size(0)
            if places < length and not self._clamps and (longest := int((~hidden).sum(dim=1).max())) > places:
                raise AggdecError(
                    f"a source has {longest} symbols, end of sentence included, and the model's encoder only {places} "
                    "positions: leave it out or cut it"
                )
            if padded:
                x = x + self._positions.look_up((~hidden).cumsum(dim=1).sub_(1).clamp_(min=0), length)
            else:
                x = x + self._positions.span(0, length)
        if self._embedding_norm is not None:
            x = self._embedding_norm(x)
        if padded:
            x = x.masked_fill(hidden[..., None], 0.0)
        x = self._layered(x, hidden if padded else None)
        return {
            "encoder_out": [x.transpose(0, 1)],
            "encoder_padding_mask": [hidden],
            "encoder_embedding": [embedding],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
        }

    def _layered(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        """The output of the layers, B x S x C; `hidden`: B x S, the padding; None without padding."""
        if self._stack is not None:
            return self._stack(x, hidden)
        mask = None if hidden is None else additive_mask(hidden, x)[:, None, None]
        for layer in self._layers:
            x = layer(x, mask)
        return x if self._final_norm is None else self._final_norm(x)
