"""Which models the engine can run, by exact type: a subclass may compute something else."""

from functools import partial
from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import (
    TransformerDecoder,
    TransformerDecoderBase,
    TransformerEncoder,
    TransformerEncoderBase,
    TransformerModelBase,
)
from fairseq.modules import (
    FairseqDropout,
    LayerNorm,
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
)
from fairseq.modules.checkpoint_activations import _checkpointed_forward
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
    TransformerEncoderLayer,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from fairseq_aggdec.engine.native.modules import ACTIVATIONS
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
_DROPOUTS = (FairseqDropout, nn.Dropout, nn.Identity)
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
    if stack.embed_tokens.max_norm is not None:
        return "embeddings that are scaled when they are read"
    words = stack.embed_tokens.weight
    for name, weight in stack.named_parameters():
        if type(weight) not in (nn.Parameter, Tensor):
            return f"{name} of type {type(weight).__name__}"
        if (weight.dtype, weight.device) != (words.dtype, words.device):
            return f"{name} in {weight.dtype} on {weight.device} and embeddings in {words.dtype} on {words.device}"
    if _global_forward_hooks or _global_forward_pre_hooks:
        return "hooks on all modules"
    for name, module in stack.named_modules():
        if name.endswith("dropout_module") and type(module) not in _DROPOUTS:
            return f"{name} of type {type(module).__name__}"
        if not _has_own_shapes(module):
            return f"{name} with weights of other shapes than it says"
        own = next((method for method in vars(module) if _is_replaced(module, method)), None)
        if own is not None:
            return f"{name or type(module).__name__} with a {own} of its own"
        if module._forward_hooks or module._forward_pre_hooks:  # weight_norm and pruning make weights in such a hook
            return f"a hook on {name or type(module).__name__}"
        if getattr(module, "apply_during_inference", False):
            return "dropout while decoding"
    return None


def _has_own_shapes(module: nn.Module) -> bool:
    """Whether a projection's or norm's weights are as large as its class makes them; PyTorch repeats smaller ones."""
    if isinstance(module, nn.Linear):
        outputs, found = (module.out_features,), module.weight.shape
        return found == (*outputs, module.in_features) and (module.bias is None or module.bias.shape == outputs)
    if isinstance(module, _NORMS):
        parts = (part for part in (module.weight, module.bias) if part is not None)
        return len(module.normalized_shape) == 1 and all(part.shape == module.normalized_shape for part in parts)
    return True


def _is_replaced(module: nn.Module, name: str) -> bool:
    """Whether a module's method is another one than its class's, but for what `--checkpoint-activations` puts there."""
    found = vars(module)[name]
    if isinstance(found, partial) and found.func is _checkpointed_forward:
        return False
    return callable(found) and callable(getattr(type(module), name, None))


def _unequal_layers(stack: Any) -> str | None:
    """Why layers, whose parts are supported, do not fit one another or what is around them: pruning may leave such."""
    layers = layers_of(stack)
    if len({_kind(layer) for layer in layers}) > 1:
        return "layers of different kinds or sizes"
    before = getattr(stack, "project_in_dim", None)
    dim = stack.embed_tokens.embedding_dim if before is None else before.out_features
    if any(_widths(layer) != {dim} or layer.fc1.out_features != layer.fc2.in_features for layer in layers):
        return "layers whose parts differ in size"
    norms = (getattr(stack, name, None) for name in ("layer_norm", "layernorm_embedding"))
    around = [norm.normalized_shape[-1] for norm in norms if norm is not None]
    if stack.embed_positions is not None:
        around.append(stack.embed_positions.embedding_dim)
    if set(around) - {dim}:
        return "norms or positions of another size than the layers"
    after, behind = getattr(stack, "project_out_dim", None), getattr(stack, "output_projection", None)
    if behind is not None and behind.in_features != (dim if after is None else after.out_features):
        return "an output projection of another size than the layers"
    return None


def _kind(layer: Any) -> tuple[Any, ...]:
    """What the layers of one stack have in common."""
    cross = getattr(layer, "encoder_attn", None)
    heads = (layer.self_attn.num_heads, None if cross is None else cross.num_heads)
    return (*heads, layer.fc1.out_features, ACTIVATIONS.get(layer.activation_fn), layer.normalize_before)


def _widths(layer: Any) -> set[int]:
    """All sizes that are one in fairseq's layers."""
    sizes = [layer.embed_dim, layer.fc1.in_features, layer.fc2.out_features]
    for attention in (layer.self_attn, getattr(layer, "encoder_attn", None)):
        if attention is not None:
            parts = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
            sizes += [attention.embed_dim, attention.num_heads * attention.head_dim]
            sizes += [*(part.out_features for part in parts), attention.q_proj.in_features, parts[-1].in_features]
    norms = (getattr(layer, name, None) for name in _LAYER_NORMS)
    return {*sizes, *(norm.normalized_shape[-1] for norm in norms if norm is not None)}


def has_own_probabilities(model: Any) -> bool:
    """Whether a model makes probabilities otherwise than fairseq's Transformer does."""
    names, stock = ("get_normalized_probs", "get_normalized_probs_scriptable"), (BaseFairseqModel, TransformerModelBase)
    methods = [getattr(getattr(model, name), "__func__", None) for name in names]  # of what a wrapper holds, too
    return any(
        method not in [getattr(kind, name) for kind in stock] for name, method in zip(names, methods, strict=True)
    )


def unsupported_attention(attention: Any) -> str | None:
    """Why the engine cannot run an attention module, or None where it can."""
    if type(attention) is not MultiheadAttention:
        return f"attention of type {type(attention).__name__}"
    if attention.bias_k is not None or attention.add_zero_attn:
        return "attention with an extra key"
    if attention.scaling != attention.head_dim**-0.5:
        return "attention scaled by another number"
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
