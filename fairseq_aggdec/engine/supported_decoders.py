"""Which decoders the engine can run."""

from typing import Any

from fairseq.models.transformer import TransformerDecoder, TransformerDecoderBase
from fairseq.modules.transformer_layer import TransformerDecoderLayer, TransformerDecoderLayerBase

from fairseq_aggdec.engine.layers import unsupported_attention, unsupported_feed_forward

STOCK_DECODERS: tuple[type, ...] = (TransformerDecoder, TransformerDecoderBase)


def unsupported_reason(decoder: Any, kinds: tuple[type, ...] = STOCK_DECODERS) -> str | None:
    """Why this engine cannot run a decoder, or None where it can.

    Args:
        decoder: a fairseq decoder.
        kinds: the classes to take, by exact type: a subclass may compute something else. Who knows that a class of his
            own computes what `TransformerDecoderBase` does names it here.
    """
    if type(decoder) not in kinds:
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
        reasons = (unsupported_attention(layer.self_attn), unsupported_attention(layer.encoder_attn))
        reason = next(filter(None, reasons), unsupported_feed_forward(layer))
        if reason is not None:
            return reason
    return None
