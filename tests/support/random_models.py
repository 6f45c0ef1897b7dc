"""Small random fairseq models of every kind, whose outputs depend on the source, vary and end.

`tests/fuzzing` draws the kinds and options of such models; other tests name them by their shapes.
"""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_REGISTRY,
    FairseqEncoderDecoderModel,
)
from fairseq.models.transformer import TransformerModel
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

import fairseq_aggdec
from fairseq_aggdec.models import hub_t5
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint

fairseq_aggdec.register()

TINY: Any = {
    **{
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in {
            "embed_dim": 16,
            "ffn_embed_dim": 32,
            "attention_heads": 2,
            "layers": 2,
        }.items()
    },
    "max_source_positions": 64,
    "max_target_positions": 64,
    "dropout": 0.0,
}
"""fairseq's options for a Transformer of two layers"""
TINY_OF: dict[str, dict[str, Any]] = {
    "lightconv": {
        **TINY, "encoder_kernel_size_list": [3, 5], "decoder_kernel_size_list": [3, 5], "weight_softmax": True,
        "input_dropout": 0.0,
    },
    "fconv": {
        "encoder_embed_dim": 16, "encoder_layers": "[(16, 3)] * 2", "decoder_embed_dim": 16,
        "decoder_layers": "[(16, 3)] * 2", "decoder_out_embed_dim": 16, "dropout": 0.0, "max_source_positions": 64,
        "max_target_positions": 64,
    },
    "lstm": {
        "encoder_embed_dim": 16, "encoder_hidden_size": 16, "encoder_layers": 1, "decoder_embed_dim": 16,
        "decoder_hidden_size": 16, "decoder_layers": 1, "decoder_out_embed_dim": 16, "dropout": 0.0,
        "criterion": "cross_entropy", "max_source_positions": 64, "max_target_positions": 64,
    },
}  # fmt: skip
"""options of architectures that are no Transformers"""


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers, the same in every run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def dictionary(words: int, offset: int = 0) -> Dictionary:
    """A dictionary of the words w0, w1, ... and fairseq's four special symbols."""
    symbols = Dictionary()
    for number in range(words):
        symbols.add_symbol(f"w{number + offset}")
    return symbols


def task_of(source: Dictionary, target: Dictionary | None = None) -> Any:
    """What models and criteria ask of a task; without `target` of one with a joined dictionary."""
    return SimpleNamespace(source_dictionary=source, target_dictionary=target or source)


def random_network(
    arch: str, seed: int, src_dict: Dictionary, tgt_dict: Dictionary, eos_share: float = 0.0, eos: int | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """A model whose scores differ clearly from token to token, so that near-ties are rare.

    Args:
        arch: fairseq's or this plugin's name of an architecture.
        seed: seed of the weights.
        src_dict: source dictionary.
        tgt_dict: target dictionary.
        eos_share: approximate share of positions at which EOS is the best token; with 0, EOS is rare.
        eos: the symbol that ends outputs; None: the dictionary's.
        options: options of the architecture that differ from `TINY`.
    """
    torch.manual_seed(seed)
    args = arguments(arch, **TINY_OF.get(arch, TINY) | options)
    task = task_of(src_dict, tgt_dict)
    model = ARCH_MODEL_REGISTRY[arch].build_model(args, task)
    draw_weights(model)
    if arch == "blockwise_transformer":
        draw_heads(model)
    let_end(model.eval(), tgt_dict, eos_share, tgt_dict.eos() if eos is None else eos)
    return model


def arguments(arch: str, **given: Any) -> Namespace:
    """The options that `fairseq-train --arch ARCH` leaves in a checkpoint."""
    args = Namespace(arch=arch, task="translation", **given)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


@torch.no_grad()
def draw_weights(model: Any) -> None:
    """Draw weights of such sizes that the output depends on the source instead of repeating one token."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 2.0 / parameter.size(-1) ** 0.5)
        else:
            parameter.add_(0.2 * torch.randn_like(parameter))
        if name.endswith("weight_g"):  # the lengths of fconv's weights
            parameter.mul_(0.5)
        if name.startswith("decoder") and (
            "encoder_attn.v_proj" in name or "encoder_attn.out_proj" in name
        ):
            parameter.mul_(0.3)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            module.weight.normal_(
                0, 1.0 if isinstance(module, LearnedPositionalEmbedding) else 0.2
            )
            module.weight[module.padding_idx] = 0
        # what T5 adds to scores decides as much as they do, which nothing scales
        if isinstance(module, hub_t5.Attention):
            module.q_proj.weight.mul_(module.head_dim**-0.5)
        if isinstance(module, hub_t5.DistanceBias):
            module.table.weight.normal_(0, 3)
    if isinstance(model, hub_t5.T5Model):
        model.encoder.embed_tokens.weight.normal_(0, 1)


@torch.no_grad()
def draw_heads(model: Any) -> None:
    """Draw proposal heads whose tokens sometimes equal those of head 1."""
    for parameter in model.decoder.heads.parameters():
        parameter.normal_(0, 1.0 / parameter.size(-1) ** 0.5)


@torch.no_grad()
def let_end(model: Any, tgt_dict: Dictionary, share: float, eos: int) -> None:
    """Change EOS's row of the output projection so that EOS is the best token at this share of positions."""
    decoder = model.decoder
    projection = _projection(decoder)
    # below an adaptive softmax's head
    if share == 0 or eos >= projection.weight.size(0):
        return
    read = torch.randint(
        tgt_dict.nspecial, len(tgt_dict), (8, min(24, int(decoder.max_positions())))
    )
    read[:, 0] = eos
    is_speech = hasattr(model.encoder, "subsample")
    source = torch.randn(8, 20, 8) if is_speech else torch.randint(4, 9, (8, 10))
    encoded = model.encoder(source, torch.full((8,), source.size(1)))
    states: list[Tensor] = []
    hook = projection.register_forward_pre_hook(
        lambda _, inputs: states.append(inputs[0].flatten(0, -2))
    )
    to_best = _to_best(model, eos, read, encoded)
    hook.remove()
    # fconv and LSTM; the weights of fconv are computed from others
    if projection.bias is not None:
        projection.bias[eos] += to_best.quantile(share)
        return
    mean = states[0].mean(dim=0)
    weight = projection.weight
    # the mean state then favours no token
    weight -= torch.outer(weight @ mean, mean) / mean.dot(mean)
    to_best = _to_best(model, eos, read, encoded)
    weight[eos] += mean / mean.dot(mean) * to_best.quantile(share)


@torch.no_grad()
def twin_words(model: Any, apart: bool = False) -> None:
    """Let words come in pairs that are read alike and have the same score.

    `apart`: they are read as before, and their scores differ in the last bit or not at all. Models whose output
    projection is not a plain one stay as they are.
    """
    projection = getattr(model.decoder, "output_projection", None)
    if projection is None or projection.bias is not None:
        return
    for weight in (
        [projection.weight]
        if apart
        else [projection.weight, model.decoder.embed_tokens.weight]
    ):
        ordinary = weight[4:]
        first, second = (
            ordinary[: len(ordinary) // 2 * 2].unflatten(0, (-1, 2)).unbind(1)
        )
        second.copy_(torch.nextafter(first, 2 * first) if apart else first)


def _projection(decoder: Any) -> torch.nn.Linear:
    """The output projection, whose weights can be changed."""
    for name in ("output_projection", "fc_out", "fc3"):
        if getattr(decoder, name, None) is not None:
            return getattr(decoder, name)
    return decoder.adaptive_softmax.head


def _to_best(model: Any, eos: int, read: Tensor, encoded: Any) -> Tensor:
    """Log-probability of the best token minus that of EOS, at every position."""
    log_probs = model.get_normalized_probs(
        model.decoder(read, encoder_out=encoded), log_probs=True
    )
    return log_probs.max(dim=-1).values - log_probs[..., eos]


def share_encoder(drafter: Any, verifier: Any) -> None:
    """Give a drafter the verifier's encoder, as after training with --encoder-from VERIFIER --freeze-encoder."""
    drafter.encoder.load_state_dict(verifier.encoder.state_dict())
    drafter.encoder_fingerprint.copy_(encoder_fingerprint(verifier.encoder))


_PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
_LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
_ADAPTIVE: Any = {
    "adaptive_softmax_cutoff": "8,12",
    "adaptive_softmax_dropout": 0.0,
}
SHAPES: dict[str, dict[str, Any]] = {
    "post-norm sinusoidal": {},
    "pre-norm sinusoidal": _PRE_NORM,
    "post-norm learned": _LEARNED,
    "pre-norm learned, layernorm_embedding": {
        **_PRE_NORM,
        **_LEARNED,
        "layernorm_embedding": True,
    },
    "shared output projection": {"share_decoder_input_output_embed": True},
    "narrow embeddings": {
        "decoder_embed_dim": 24,
        "decoder_output_dim": 16,
        "decoder_input_dim": 16,
    },
    "no positions": {"no_token_positional_embeddings": True},
    "gelu, three layers": {"activation_fn": "gelu", "decoder_layers": 3},
    "swish, biased logits": {"activation_fn": "swish"},
    "T5": {
        "head_dim": 12,
        "is_gated": True,
        "distance_buckets": 8,
        "longest_distance": 12,
        "norm_eps": 1e-6,
        "share_all_embeddings": False,
        "first_input": 1,
    },
}
FALLBACK_SHAPES: dict[str, dict[str, Any]] = {
    "adaptive softmax": _ADAPTIVE,
    "adaptive softmax, learned positions": {**_ADAPTIVE, "decoder_learned_pos": True},
    "cross-self-attention": {"cross_self_attention": True, "no_cross_attention": True},
}
LIGHTCONV_SHAPES: dict[str, dict[str, Any]] = {
    "lightweight convolutions": {
        "encoder_conv_type": "lightweight",
        "decoder_conv_type": "lightweight",
    },
    "dynamic convolutions": {
        "encoder_conv_type": "dynamic",
        "decoder_conv_type": "dynamic",
    },
}
ARCHS = {
    **dict.fromkeys(LIGHTCONV_SHAPES, "lightconv"),
    "swish, biased logits": "hub_transformer",
    "T5": "hub_t5",
}
"""of those that are no fairseq Transformers"""
ALL_SHAPES = [*SHAPES, *FALLBACK_SHAPES, *LIGHTCONV_SHAPES]
ENGINE_SHAPES = list(SHAPES)


def model_of_shape(
    name: str, seed: int, words: Dictionary, eos_share: float = 0.0, **changes: Any
) -> FairseqEncoderDecoderModel:
    """A random model of a named shape with one dictionary, with architecture options changed as given."""
    arch = ARCHS.get(name, "transformer")
    shape = {**SHAPES, **FALLBACK_SHAPES, **LIGHTCONV_SHAPES}[name]
    return random_network(arch, seed, words, words, eos_share, **shape | changes)


def random_model(
    seed: int, words: Dictionary, eos_share: float = 0.0, **shape: Any
) -> TransformerModel:
    """A Transformer with one dictionary and fairseq's architecture options; see `random_network`."""
    return random_network("transformer", seed, words, words, eos_share, **shape)


DRAFTER_SHAPES: dict[str, dict[str, Any]] = {
    **{f"causal, {name}": SHAPES[name] for name in SHAPES if name != "T5"},
    "causal, source copy": {"mask_source_copy": True},
    "causal, source copy, learned": {
        "mask_source_copy": True,
        "decoder_learned_pos": True,
    },
    "bidirectional": {"prefix_attention": "bidirectional"},
    "bidirectional, source copy, pre-norm learned": {
        "prefix_attention": "bidirectional",
        "mask_source_copy": True,
        "decoder_normalize_before": True,
        "decoder_learned_pos": True,
    },
}


def random_drafter(
    shape: str, seed: int, words: Dictionary, block_size: int, **changes: Any
) -> NarDrafterModel:
    """A drafter of a named shape, with architecture options changed as given."""
    options = {"block_size": block_size, **DRAFTER_SHAPES[shape], **changes}
    return random_network("nar_drafter", seed, words, words, **options)


def texts_of(tokens: Tensor, lengths: Iterable[int]) -> list[list[int]]:
    """The beginnings, of these lengths, of the rows of B x T tokens."""
    return [
        row[: int(length)] for row, length in zip(tokens.tolist(), lengths, strict=True)
    ]


HEAD_KINDS: dict[str, dict[str, Any]] = {
    "identity": {"identity_head": True},
    "learned": {},
    "identity, own hidden": {"identity_head": True, "own_hidden": True},
    "learned, own hidden": {"own_hidden": True},
}


def random_blockwise(
    shape: str, kind: str, seed: int, words: Dictionary, heads: int, eos_share: float = 0.0, **changes: Any,
) -> BlockwiseTransformerModel:  # fmt: skip
    """A model of a named shape with heads of a named kind, with architecture options changed as given."""
    options = {**SHAPES[shape], **HEAD_KINDS[kind], **changes}
    return random_network(
        "blockwise_transformer", seed, words, words, eos_share,
        **{"block_heads": heads, "head_ffn_embed_dim": 24, **options},
    )  # fmt: skip


def save_base(model: FairseqEncoderDecoderModel, path: Path, **options: Any) -> Path:
    """A checkpoint as fairseq-train leaves it, with the options of `random_model`."""
    args = Namespace(**{"arch": "transformer", **TINY, **options})
    torch.save(
        {"model": model.state_dict(), "cfg": {"model": args}, "args": None}, path
    )
    return path


def on_base(
    path: Path | None,
    words: Dictionary,
    tgt_dict: Dictionary | None = None,
    **options: Any,
) -> BlockwiseTransformerModel:
    """What --arch blockwise_transformer --base-checkpoint PATH builds."""
    given = {"block_heads": 4, "base_checkpoint": path and str(path)} | options
    args = arguments("blockwise_transformer", **given)
    return BlockwiseTransformerModel.build_model(args, task_of(words, tgt_dict))


def random_batch(
    seed: int, src_dict: Dictionary, lengths: list[int], left_pad: bool = True
) -> dict[str, Any]:
    """Random sentences of the given lengths (EOS not counted), padded as fairseq pads them."""
    generator = torch.Generator().manual_seed(seed)
    width = max(lengths) + 1
    tokens = torch.full((len(lengths), width), src_dict.pad())
    for row, length in enumerate(lengths):
        words = torch.randint(
            src_dict.nspecial, len(src_dict), (length,), generator=generator
        )
        sentence = torch.cat([words, torch.tensor([src_dict.eos()])])
        begin = width - length - 1 if left_pad else 0
        tokens[row, begin : begin + length + 1] = sentence
    return {
        "id": torch.arange(len(lengths)),
        "net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(lengths) + 1},
    }
