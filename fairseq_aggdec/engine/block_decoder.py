"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder, given an incremental state, reads one token and drops the causal mask; this one reads any number
of tokens at any position per row, over the same weights. Nothing is retrained and the checkpoint is untouched.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoder, TransformerDecoderBase
from fairseq.modules import MultiheadAttention, SinusoidalPositionalEmbedding
from fairseq.modules.transformer_layer import TransformerDecoderLayer, TransformerDecoderLayerBase
from torch import Tensor, nn

from fairseq_aggdec.engine.kv_cache import KVCache


def unsupported_reason(decoder: Any) -> str | None:
    """Why this engine cannot run a decoder, or None where it can."""
    if type(decoder) not in (TransformerDecoder, TransformerDecoderBase):
        return f"{type(decoder).__name__} is not fairseq's plain Transformer decoder"
    if decoder.adaptive_softmax is not None:
        return "adaptive softmax"
    if decoder.cross_self_attention:
        return "cross-self-attention"
    if decoder.quant_noise is not None:
        return "quantisation noise"
    for layer in decoder.layers:
        if type(layer) not in (TransformerDecoderLayer, TransformerDecoderLayerBase):
            return f"a layer of type {type(layer).__name__}"
        if layer.encoder_attn is None:
            return "no attention to the encoder"
        extras = (layer.attn_ln, layer.c_attn, layer.ffn_layernorm, layer.w_resid)
        if any(extra is not None for extra in extras):
            return "scaled attention, heads, feed-forward or residuals (NormFormer)"
        for attention in (layer.self_attn, layer.encoder_attn):
            if type(attention) is not MultiheadAttention:
                return f"attention of type {type(attention).__name__}"
            if attention.bias_k is not None or attention.add_zero_attn:
                return "attention with an extra key"
            projections = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
            if any(type(projection) is not nn.Linear for projection in projections):
                return "attention projections that are not plain linear layers"
        if type(layer.fc1) is not nn.Linear or type(layer.fc2) is not nn.Linear:
            return "feed-forward projections that are not plain linear layers"
    return None


@dataclass
class _Norm:
    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


@dataclass
class _Linear:
    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass
class _Layer:
    """One decoder layer's weights, attention projections fused."""

    self_qkv: _Linear
    self_out: _Linear
    self_norm: _Norm
    cross_q: _Linear
    cross_kv: _Linear
    cross_out: _Linear
    cross_norm: _Norm
    fc1: _Linear
    fc2: _Linear
    final_norm: _Norm
    activation: Callable[[Tensor], Tensor]
    norm_first: bool
    heads: int


class BlockDecoder:
    """A `loop.Verifier` over a fairseq `TransformerDecoder`: cached, any block width, positions per row."""

    def __init__(self, decoder: TransformerDecoderBase) -> None:
        reason = unsupported_reason(decoder)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        self._decoder = decoder
        self._read_from = (decoder.embed_tokens.weight.device, decoder.embed_tokens.weight.dtype)
        self._layers = [_read_layer(layer) for layer in decoder.layers]
        self._embedding_norm = None if decoder.layernorm_embedding is None else _norm(decoder.layernorm_embedding)
        self._final_norm = None if decoder.layer_norm is None else _norm(decoder.layer_norm)
        self._cache = KVCache(len(self._layers), decoder.embed_dim)
        self._position_table = _position_table(decoder)
        self._causal = torch.empty(0)
        self._cross: list[tuple[Tensor, Tensor]] = []  # keys, values of the encoder output: B x H x S x D/H
        self._cross_mask: Tensor | None = None  # B x 1 x 1 x S, additive

    def is_current(self) -> bool:
        """Whether the model still has the device and precision it was read with."""
        weight = self._decoder.embed_tokens.weight
        return (weight.device, weight.dtype) == self._read_from

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Take a new batch: fairseq's encoder output, `encoder_out["encoder_out"][0]` of S x B x C."""
        memory = encoder_out["encoder_out"][0].transpose(0, 1)  # B x S x C
        masks = encoder_out["encoder_padding_mask"]
        self._cross_mask = None
        # on a CPU a look at the mask is free and often saves it; on a GPU it would cost a synchronisation
        if len(masks) > 0 and (masks[0].is_cuda or bool(masks[0].any())):
            mask = masks[0]
            self._cross_mask = torch.zeros(mask.shape, dtype=memory.dtype, device=mask.device)
            self._cross_mask = self._cross_mask.masked_fill_(mask, -math.inf)[:, None, None]
        self._cross = []
        for layer in self._layers:
            keys, values = layer.cross_kv(memory).chunk(2, dim=-1)
            self._cross.append((_split_heads(keys, layer.heads), _split_heads(values, layer.heads)))
        self._cache.start(memory.size(0), memory)

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """See `loop.Verifier.score`."""
        return self._project(self.features(block, starts, longest))

    def features(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """Decoder output before the vocabulary projection, B x W x D."""
        decoder = self._decoder
        positions = starts[:, None] + torch.arange(block.size(1), device=block.device)  # B x W
        x = decoder.embed_scale * F.embedding(block, decoder.embed_tokens.weight)
        if decoder.project_in_dim is not None:
            x = decoder.project_in_dim(x)
        if self._position_table is not None:
            x = x + self._positions(positions, longest + block.size(1))
        if self._embedding_norm is not None:
            x = self._embedding_norm(x)

        self._cache.reserve(longest + block.size(1))
        mask = self._self_mask(positions, longest, x)
        for number, layer in enumerate(self._layers):
            x = self._layer(number, layer, x, positions, longest, mask)
        if self._final_norm is not None:
            x = self._final_norm(x)
        return x if decoder.project_out_dim is None else decoder.project_out_dim(x)

    def keep(self, rows: Tensor) -> None:
        self._cache.keep(rows)
        self._cross = [(keys[rows], values[rows]) for keys, values in self._cross]
        if self._cross_mask is not None:
            self._cross_mask = self._cross_mask[rows]

    def _project(self, features: Tensor) -> Tensor:
        return self._decoder.output_projection(features)

    def _layer(
        self, number: int, layer: _Layer, x: Tensor, positions: Tensor, longest: int, mask: Tensor | None
    ) -> Tensor:
        """One layer, as `TransformerDecoderLayerBase.forward` computes it without dropout."""
        dim = x.size(-1)
        residual = x
        if layer.norm_first:
            x = layer.self_norm(x)
        qkv = layer.self_qkv(x)
        seen = self._cache.write(number, qkv[..., dim:], positions, longest)
        x = layer.self_out(
            _attend(
                _split_heads(qkv[..., :dim], layer.heads),
                _split_heads(seen[..., :dim], layer.heads),
                _split_heads(seen[..., dim:], layer.heads),
                mask,
            )
        )
        x = residual + x
        if not layer.norm_first:
            x = layer.self_norm(x)

        residual = x
        if layer.norm_first:
            x = layer.cross_norm(x)
        keys, values = self._cross[number]
        x = layer.cross_out(_attend(_split_heads(layer.cross_q(x), layer.heads), keys, values, self._cross_mask))
        x = residual + x
        if not layer.norm_first:
            x = layer.cross_norm(x)

        residual = x
        if layer.norm_first:
            x = layer.final_norm(x)
        x = residual + layer.fc2(layer.activation(layer.fc1(x)))
        return x if layer.norm_first else layer.final_norm(x)

    def _self_mask(self, positions: Tensor, longest: int, like: Tensor) -> Tensor | None:
        """Additive mask that lets each token see its row up to itself: None, W x L, or B x 1 x W x L."""
        batch_size, width = positions.shape
        end = longest + width
        if batch_size == 1:
            if width == 1:
                return None
            if self._causal.size(0) < end or self._causal.dtype != like.dtype or self._causal.device != like.device:
                size = max(end, 2 * self._causal.size(0))
                self._causal = torch.full((size, size), -math.inf, dtype=like.dtype, device=like.device).triu_(1)
            return self._causal[longest:end, :end]
        hidden = torch.arange(end, device=like.device) > positions[..., None]  # B x W x L
        return torch.zeros(hidden.shape, dtype=like.dtype, device=like.device).masked_fill_(hidden, -math.inf)[:, None]

    def _positions(self, positions: Tensor, end: int) -> Tensor:
        """Position embeddings, B x W x D; positions behind the table occur only in padding and are clamped."""
        module = self._decoder.embed_positions
        offset = module.padding_idx + 1
        assert self._position_table is not None
        if offset + end > self._position_table.size(0) and isinstance(module, SinusoidalPositionalEmbedding):
            table = module.get_embedding(2 * (offset + end), module.embedding_dim, module.padding_idx)
            self._position_table = table.to(self._position_table)
        index = (positions + offset).clamp(max=self._position_table.size(0) - 1)
        return F.embedding(index, self._position_table)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Scaled dot-product attention, B x H x W x D/H -> B x W x D."""
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask).transpose(1, 2).flatten(2)


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """B x L x D -> B x H x L x D/H."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _read_layer(layer: TransformerDecoderLayerBase) -> _Layer:
    own, cross = layer.self_attn, layer.encoder_attn
    return _Layer(
        self_qkv=_fused(own.q_proj, own.k_proj, own.v_proj),
        self_out=_fused(own.out_proj),
        self_norm=_norm(layer.self_attn_layer_norm),
        cross_q=_fused(cross.q_proj),
        cross_kv=_fused(cross.k_proj, cross.v_proj),
        cross_out=_fused(cross.out_proj),
        cross_norm=_norm(layer.encoder_attn_layer_norm),
        fc1=_fused(layer.fc1),
        fc2=_fused(layer.fc2),
        final_norm=_norm(layer.final_layer_norm),
        activation=layer.activation_fn,
        norm_first=layer.normalize_before,
        heads=own.num_heads,
    )


def _fused(*projections: nn.Linear) -> _Linear:
    """One product for several projections of the same input; a single one keeps the model's own tensor."""
    if len(projections) == 1:
        return _Linear(projections[0].weight, projections[0].bias)
    weights: list[Tensor] = [projection.weight for projection in projections]
    biases: list[Tensor] = [
        projection.weight.new_zeros(projection.weight.size(0)) if projection.bias is None else projection.bias
        for projection in projections
    ]
    return _Linear(torch.cat(weights), torch.cat(biases))


def _norm(module: nn.LayerNorm) -> _Norm:
    return _Norm(module.weight, module.bias, module.eps)


def _position_table(decoder: TransformerDecoderBase) -> Tensor | None:
    module = decoder.embed_positions
    if module is None:
        return None
    if isinstance(module, SinusoidalPositionalEmbedding):
        return module.weights.to(decoder.embed_tokens.weight)
    return module.weight
