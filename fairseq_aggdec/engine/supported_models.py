"""Which models the engine can run, by exact type: a subclass may compute something else."""

from typing import Any

import torch
from fairseq.models.transformer import (
    TransformerDecoder,
    TransformerDecoderBase,
    TransformerEncoder,
    TransformerEncoderBase,
)
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
    TransformerEncoderLayer,
    TransformerEncoderLayerBase,
)
from torch import nn

from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder
from fairseq_aggdec.models.layer_list import layers_of

STOCK_DECODERS: tuple[type, ...] = (TransformerDecoder, TransformerDecoderBase)
VERIFIERS: tuple[type, ...] = (*STOCK_DECODERS, BlockwiseDecoder)


def unsupported_decoder(decoder: Any, kinds: tuple[type, ...] = VERIFIERS) -> str | None:
    """Why the engine cannot run a decoder, or None where it can.

    Who knows that a class of his own computes what `TransformerDecoderBase` does names it among `kinds`.
    """
    if type(decoder) not in kinds:
        return f"{type(decoder).__name__} is not fairseq's plain Transformer decoder"
    if decoder.adaptive_softmax is not None:
        return "adaptive softmax"
    if decoder.cross_self_attention:
        return "cross-self-attention"
    if decoder.quant_noise is not None:
        return "quantisation noise"
    if len(decoder.layers) == 0:
        return "a decoder without layers"
    for layer in layers_of(decoder):
        if type(layer) not in (TransformerDecoderLayer, TransformerDecoderLayerBase):
            return f"a layer of type {type(layer).__name__}"
        if layer.encoder_attn is None:
            return "no attention to the encoder"
        extras = (layer.attn_ln, layer.c_attn, layer.ffn_layernorm, layer.w_resid)
        if any(extra is not None for extra in extras):
            return "scaled attention, heads, feed-forward or residuals (NormFormer)"
        reasons = (unsupported_attention(layer.self_attn), unsupported_attention(layer.encoder_attn))
        reason = next(filter(None, reasons), unsupported_feed_forward(layer))
        if reason is not None:
            return reason
    return None


def unsupported_encoder(encoder: Any) -> str | None:
    """Why the engine cannot run an encoder, or None where it can."""
    if type(encoder) not in (TransformerEncoder, TransformerEncoderBase):
        return f"{type(encoder).__name__} is not fairseq's plain Transformer encoder"
    if encoder.quant_noise is not None:
        return "quantisation noise"
    if len(encoder.layers) == 0:
        return "an encoder without layers"
    for layer in layers_of(encoder):
        if type(layer) not in (TransformerEncoderLayer, TransformerEncoderLayerBase):
            return f"a layer of type {type(layer).__name__}"
        reason = unsupported_attention(layer.self_attn) or unsupported_feed_forward(layer)
        if reason is not None:
            return reason
    return None


def unsupported_attention(attention: Any) -> str | None:
    """Why the engine cannot run an attention module, or None where it can."""
    if type(attention) is not MultiheadAttention:
        return f"attention of type {type(attention).__name__}"
    if attention.bias_k is not None or attention.add_zero_attn:
        return "attention with an extra key"
    if attention.use_xformers:
        return "attention by xformers"
    projections = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
    if any(type(projection) is not nn.Linear for projection in projections):
        return "attention projections that are not plain linear layers"
    return None


def unsupported_feed_forward(layer: Any) -> str | None:
    """Why the engine cannot run a layer's feed-forward part, or None where it can."""
    if type(layer.fc1) is not nn.Linear or type(layer.fc2) is not nn.Linear:
        return "feed-forward projections that are not plain linear layers"
    return None


def broken_weight(model: nn.Module) -> str | None:
    """The name of a weight with NaN or infinity, of those that every sentence is multiplied with; None for none."""
    for name, weight in model.named_parameters(remove_duplicate=False):
        if "embed" not in name and not torch.isfinite(weight).all():
            return name
    return None
