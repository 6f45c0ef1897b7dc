"""The models that the engine supports: checks by type, for what the short run of `self_check` cannot show."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.speech_to_text.convtransformer import (
    ConvTransformerModel,
    TransformerDecoderNoExtra,
)
from fairseq.models.speech_to_text.s2t_transformer import (
    S2TTransformerModel,
    TransformerDecoderScriptable,
)
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
from fairseq_aggdec.models import hub_t5
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
VERIFIERS: tuple[type, ...] = (*STOCK_DECODERS, BlockwiseDecoder, hub_t5.T5Decoder)
DECODERS: tuple[type, ...] = (*VERIFIERS, NarDrafterDecoder)
ENCODERS: tuple[type, ...] = (
    TransformerEncoder,
    TransformerEncoderBase,
    hub_t5.T5Encoder,
)
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
    hub_t5.Layer,
    hub_t5.Attention,
    hub_t5.DistanceBias,
    nn.RMSNorm,
)
"""classes of a stack's parts that the engine computes itself; a class derived from one of them may compute otherwise"""


_ADDITIONS = ("attn_ln", "c_attn", "ffn_layernorm", "w_resid")
"""parts of fairseq's layers that few models have, and the engine has not"""


def unsupported_decoder(
    decoder: Any, kinds: tuple[type, ...] = VERIFIERS
) -> str | None:
    """All reasons why the engine cannot run a decoder, or None; `kinds`: classes like `TransformerDecoderBase`."""
    if type(decoder) not in kinds:
        return f"{type(decoder).__name__}, which is not fairseq's plain Transformer decoder"
    return _in_words(chain(_faults_of_decoder(decoder), _faults_of_stack(decoder)))


def unsupported_encoder(encoder: Any) -> str | None:
    """All reasons why the engine cannot run an encoder, or None."""
    if type(encoder) not in ENCODERS:
        return f"{type(encoder).__name__}, which is not fairseq's plain Transformer encoder"
    return _in_words(_faults_of_stack(encoder))


_Fault = tuple[str, str]
"""what differs from fairseq's plain layers, with {} for where, and where: the name of a part, or nothing"""


def _in_words(faults: Iterator[_Fault]) -> str | None:
    """Each fault once, at the first place and how many others; None where there are none."""
    places: dict[str, list[str]] = {}
    for fault, place in faults:
        places.setdefault(fault, []).append(place)
    reasons = []
    for fault, [first, *others] in places.items():
        reasons.append(
            fault.format(f"{first} and {len(others)} more" if others else first)
        )
    return "; ".join(reasons) or None


def _faults_of_decoder(decoder: Any) -> Iterator[_Fault]:
    if decoder.adaptive_softmax is not None:
        yield "adaptive softmax", ""
    if decoder.cross_self_attention:
        yield "cross-self-attention", ""
    if any(
        getattr(layer, "encoder_attn", layer) is None for layer in layers_of(decoder)
    ):
        yield "no attention to the encoder", ""


def _faults_of_stack(stack: Any) -> Iterator[_Fault]:
    """Parts that differ from fairseq's plain layers, or may do so in longer sentences or later alone.

    An adapter may change half precision by less than the tolerance of the self-check.
    """
    kind = type(stack).__name__
    if len(stack.layers) == 0:
        yield f"{kind} without layers", ""
    if next(stack.parameters(), None) is None:
        yield f"{kind} without parameters", ""
    if _global_forward_hooks or _global_forward_pre_hooks:
        yield "hooks on all modules", ""

    # parts that the engine would not run as they are; what is within such a part counts with it
    within = "."
    for name, part in stack.named_modules():
        # the engine calls the former
        if "activation_fn" in name or name.startswith(within):
            continue
        # whose type is known, and whose hooks fairseq's search does not call
        if part is not stack:
            if type(part) not in _PARTS:
                yield f"{{}} of type {type(part).__name__}", name
                within = f"{name}."
                continue
            if part._forward_hooks or part._forward_pre_hooks:
                yield "hooks of {}", name
        for method, replacement in vars(part).items():
            if callable(getattr(type(part), method, None)) and not _is_fairseqs(
                method, replacement
            ):
                yield f"{{}} with another {method}", name or kind

    # weights of NormFormer, which may change half precision by less than that tolerance, too
    for layer in layers_of(stack):
        for name in _ADDITIONS:
            if getattr(layer, name, None) is not None:
                yield f"layers with {name}", ""

    # weights that it would not read as they are
    if type(stack.embed_tokens) not in _PARTS:  # which is said
        return
    if stack.embed_tokens.max_norm is not None:
        yield "embeddings that are scaled when they are read", ""
    words = stack.embed_tokens.weight
    for name, weight in stack.named_parameters():
        if type(weight) not in (nn.Parameter, Tensor):
            yield f"{{}} of type {type(weight).__name__}", name
        if (weight.dtype, weight.device) != (words.dtype, words.device):
            yield (
                f"{{}} in {weight.dtype} on {weight.device} and embeddings in {words.dtype} on {words.device}",
                name,
            )


def _is_fairseqs(method: str, replacement: Any) -> bool:
    """Whether fairseq itself has replaced a method: of a layer with --checkpoint-activations, or of BART's encoder."""
    return (
        method == "reorder_encoder_out"
        or getattr(replacement, "func", None) is _checkpointed_forward
    )


def has_own_probabilities(model: Any) -> bool:
    """Whether a model overrides how fairseq's Transformer computes probabilities."""
    names = ("get_normalized_probs", "get_normalized_probs_scriptable")
    speech = (S2TTransformerModel, ConvTransformerModel, XMTransformerModel)
    stock = (BaseFairseqModel, TransformerModelBase, *speech)  # all compute the same
    # of a wrapper: its model's methods
    methods = [getattr(getattr(model, name), "__func__", None) for name in names]
    return any(
        method not in [getattr(kind, name) for kind in stock]
        for name, method in zip(names, methods, strict=True)
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
