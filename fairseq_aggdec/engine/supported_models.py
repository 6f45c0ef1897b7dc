"""The models that the engine supports: checks by type, for what the short run of `self_check` cannot show."""

from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.speech_to_text.convtransformer import ConvTransformerModel, TransformerDecoderNoExtra
from fairseq.models.speech_to_text.s2t_transformer import S2TTransformerModel, TransformerDecoderScriptable
from fairseq.models.speech_to_text.xm_transformer import XMTransformerModel
from fairseq.models.transformer import (
    TransformerDecoder,
    TransformerDecoderBase,
    TransformerEncoder,
    TransformerEncoderBase,
    TransformerModelBase,
)
from fairseq.modules import (
    FairseqDropout,
    LayerDropModuleList,
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
    layer_norm,
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

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder, ProposalHeads
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder
from fairseq_aggdec.models.nar_drafter_decoder import TransitionHead
from fairseq_aggdec.models.transformer_parts import layers_of

STOCK_DECODERS: tuple[type, ...] = (
    TransformerDecoder,
    TransformerDecoderBase,
    TransformerDecoderScriptable,  # of speech: returns less beside the same scores
    TransformerDecoderNoExtra,
)
VERIFIERS: tuple[type, ...] = (*STOCK_DECODERS, BlockwiseDecoder)
DECODERS: tuple[type, ...] = (*VERIFIERS, NarDrafterDecoder)
_PARTS: tuple[type, ...] = (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
    TransformerEncoderLayer,
    TransformerEncoderLayerBase,
    MultiheadAttention,
    nn.Linear,
    nn.Embedding,
    LearnedPositionalEmbedding,
    SinusoidalPositionalEmbedding,
    nn.LayerNorm,
    getattr(layer_norm, "FusedLayerNorm", nn.LayerNorm),  # of apex
    FairseqDropout,
    nn.ModuleList,
    LayerDropModuleList,
    ProposalHeads,
    TransitionHead,
)
"""classes of a stack's parts that the engine computes itself; a class derived from one of them may compute otherwise"""


def unsupported_decoder(decoder: Any, kinds: tuple[type, ...] = VERIFIERS) -> str | None:
    """The reason why the engine cannot run a decoder, or None; `kinds`: classes like `TransformerDecoderBase`."""
    if type(decoder) not in kinds:
        return f"{type(decoder).__name__}, which is not fairseq's plain Transformer decoder"
    if decoder.adaptive_softmax is not None:
        return "adaptive softmax"
    if decoder.cross_self_attention:
        return "cross-self-attention"
    reason = _unsupported_stack(decoder)
    if reason is None and any(getattr(layer, "encoder_attn", None) is None for layer in layers_of(decoder)):
        return "no attention to the encoder"
    return reason


def unsupported_encoder(encoder: Any) -> str | None:
    """The reason why the engine cannot run an encoder, or None."""
    if type(encoder) not in (TransformerEncoder, TransformerEncoderBase):
        return f"{type(encoder).__name__}, which is not fairseq's plain Transformer encoder"
    return _unsupported_stack(encoder)


def _unsupported_stack(stack: Any) -> str | None:
    """A part that differs from fairseq's plain layers, or may do so in longer sentences or later alone, or None.

    An adapter may change half precision by less than the tolerance of the self-check.
    """
    if len(stack.layers) == 0:
        return f"{type(stack).__name__} without layers"
    if next(stack.parameters(), None) is None:
        return f"{type(stack).__name__} without parameters"
    if _global_forward_hooks or _global_forward_pre_hooks:
        return "hooks on all modules"
    for name, part in stack.named_modules():
        if "activation_fn" in name:  # which the engine calls
            continue
        if part is not stack:  # whose type is known, and whose hooks fairseq's search does not call
            if type(part) not in _PARTS:
                return f"{name} of type {type(part).__name__}"
            if part._forward_hooks or part._forward_pre_hooks:
                return f"hooks of {name}"
        for method, own in vars(part).items():
            if callable(getattr(type(part), method, None)) and not _is_fairseqs(method, own):
                return f"{name or type(part).__name__} with another {method}"
    if stack.embed_tokens.max_norm is not None:
        return "embeddings that are scaled when they are read"
    words = stack.embed_tokens.weight
    for name, weight in stack.named_parameters():
        if type(weight) not in (nn.Parameter, Tensor):
            return f"{name} of type {type(weight).__name__}"
        if (weight.dtype, weight.device) != (words.dtype, words.device):
            return f"{name} in {weight.dtype} on {weight.device} and embeddings in {words.dtype} on {words.device}"
    return None


def _is_fairseqs(method: str, own: Any) -> bool:
    """Whether fairseq itself has replaced a method: of a layer with --checkpoint-activations, or of BART's encoder."""
    return method == "reorder_encoder_out" or getattr(own, "func", None) is _checkpointed_forward


def has_own_probabilities(model: Any) -> bool:
    """Whether a model overrides how fairseq's Transformer computes probabilities."""
    names = ("get_normalized_probs", "get_normalized_probs_scriptable")
    speech = (S2TTransformerModel, ConvTransformerModel, XMTransformerModel)
    stock = (BaseFairseqModel, TransformerModelBase, *speech)  # all compute the same
    methods = [getattr(getattr(model, name), "__func__", None) for name in names]  # of a wrapper: its model's methods
    return any(
        method not in [getattr(kind, name) for kind in stock] for name, method in zip(names, methods, strict=True)
    )


def check_weights(model: nn.Module, side: str) -> None:
    """Raise `AggdecError` for NaN and infinity, at which fairseq's search fails; here they might go unnoticed."""
    for name, weight in model.named_parameters(remove_duplicate=False):
        # not every sentence reads all of the embeddings
        if "embed" not in name and not torch.isfinite(weight).all():
            raise AggdecError(
                f"the model's {side}.{name} holds NaN or infinity, so that all scores are NaN: its training has "
                "diverged; use an earlier checkpoint"
            )
