"""Which models the engine can run, by exact type: a subclass may compute something else."""

from typing import Any

import torch
from fairseq.models.transformer import (
    TransformerDecoder,
    TransformerDecoderBase,
    TransformerEncoder,
    TransformerEncoderBase,
)
from fairseq.modules import LayerNorm, LearnedPositionalEmbedding, MultiheadAttention, SinusoidalPositionalEmbedding
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
    TransformerEncoderLayer,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder
from fairseq_aggdec.models.layer_list import layers_of

STOCK_DECODERS: tuple[type, ...] = (TransformerDecoder, TransformerDecoderBase)
VERIFIERS: tuple[type, ...] = (*STOCK_DECODERS, BlockwiseDecoder)
_NORMS = (nn.LayerNorm, type(LayerNorm(1)))
_AROUND: dict[str, tuple[type, ...]] = {
    "embed_tokens": (nn.Embedding,),
    "embed_positions": (SinusoidalPositionalEmbedding, LearnedPositionalEmbedding),
    "layernorm_embedding": _NORMS,
    "layer_norm": _NORMS,
    "project_in_dim": (nn.Linear,),
    "project_out_dim": (nn.Linear,),
    "output_projection": (nn.Linear,),
}
"""what an encoder or a decoder has beside its layers, where it has it"""
_LAYER_NORMS = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")


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
    around = _unsupported_part(decoder)
    if around is not None:
        return around
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
    return _unequal_layers(decoder)


def unsupported_encoder(encoder: Any) -> str | None:
    """Why the engine cannot run an encoder, or None where it can."""
    if type(encoder) not in (TransformerEncoder, TransformerEncoderBase):
        return f"{type(encoder).__name__} is not fairseq's plain Transformer encoder"
    if encoder.quant_noise is not None:
        return "quantisation noise"
    if len(encoder.layers) == 0:
        return "an encoder without layers"
    around = _unsupported_part(encoder)
    if around is not None:
        return around
    for layer in layers_of(encoder):
        if type(layer) not in (TransformerEncoderLayer, TransformerEncoderLayerBase):
            return f"a layer of type {type(layer).__name__}"
        reason = unsupported_attention(layer.self_attn) or unsupported_feed_forward(layer)
        if reason is not None:
            return reason
    return _unequal_layers(encoder)


def _unsupported_part(stack: Any) -> str | None:
    """Why the engine cannot run what is around the layers, or done beside them; None where it can."""
    parts = [(getattr(stack, name, None), name, types) for name, types in _AROUND.items()]
    parts += [(getattr(layer, name, None), name, _NORMS) for layer in layers_of(stack) for name in _LAYER_NORMS]
    for part, name, types in parts:
        if part is not None and type(part) not in types:
            return f"{name} of type {type(part).__name__}"
    for name, weight in stack.named_parameters():
        if type(weight) not in (nn.Parameter, Tensor):
            return f"{name} of type {type(weight).__name__}"
    for name, module in stack.named_modules():
        if module._forward_hooks or module._forward_pre_hooks:  # weight_norm and pruning make weights in such a hook
            return f"a hook on {name or type(module).__name__}"
        if getattr(module, "apply_during_inference", False):
            return "dropout while decoding"
    return None


def _unequal_layers(stack: Any) -> str | None:
    """Whether layers, whose parts are supported, are unlike one another: pruning may leave such ones."""
    kinds = {_kind(layer) for layer in layers_of(stack)}
    if len(kinds) > 1:
        return "layers of different kinds or sizes"
    for layer in layers_of(stack):
        attentions = (layer.self_attn, getattr(layer, "encoder_attn", None))
        if not all(_has_whole_heads(attention, layer.embed_dim) for attention in attentions if attention is not None):
            return "attention of another size than its layer"
    return None


def _kind(layer: Any) -> tuple[Any, ...]:
    """What the layers of one stack have in common."""
    cross = getattr(layer, "encoder_attn", None)
    heads = (layer.self_attn.num_heads, None if cross is None else cross.num_heads)
    return (layer.embed_dim, *heads, layer.fc1.out_features, layer.activation_fn, layer.normalize_before)


def _has_whole_heads(attention: Any, dim: int) -> bool:
    """Whether an attention module is as wide as the layer around it, as fairseq makes them."""
    outputs = [part.out_features for part in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)]
    inputs = [attention.q_proj.in_features, attention.out_proj.in_features]
    return {*outputs, *inputs, attention.embed_dim, attention.num_heads * attention.head_dim} == {dim}


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
