"""A Transformer's architecture in fairseq's options: reading it, filling in defaults, naming it, refusing options.

Options are flat on a command line (`encoder_layers`), and in groups `encoder` and `decoder` in YAML.

Named architectures with a shallow decoder (Shallow Aggressive Decoding, papers/002 §3.2 and Table 4): `--arch
transformer_big_9_3`, `transformer_small_11_1`, `bart_12_2` and the others of `sizes.SIZES` are fairseq's models
`transformer` and `bart` with other default sizes. Sizes that fairseq names keep that name: `transformer` (base),
`bart_base`, `bart_large`.

Models that start from a checkpoint (`--base-checkpoint`, `--encoder-from`) take their architecture from it.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from fairseq.models import ARCH_CONFIG_REGISTRY, register_model_architecture
from fairseq.models.bart.model import bart_large_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import base_architecture
from omegaconf import DictConfig, OmegaConf

from fairseq_aggdec.compat.checkpoints import (
    is_loading_models,
    loading_models,
    read_checkpoint,
)
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.models.sizes import SIZES, Size, architecture

_SIDE_OPTIONS = (
    "embed_dim",
    "ffn_embed_dim",
    "layers",
    "attention_heads",
    "normalize_before",
    "learned_pos",
)
_OPTIONS = (
    "decoder_input_dim",
    "decoder_output_dim",
    "activation_fn",
    "share_all_embeddings",
    "merge_src_tgt_embed",
    "share_decoder_input_output_embed",
    "no_token_positional_embeddings",
    "layernorm_embedding",
    "no_scale_embedding",
    "no_decoder_final_norm",
    "adaptive_softmax_cutoff",
    "cross_self_attention",
    "no_cross_attention",
    # of T5's encoder
    "head_dim",
    "distance_buckets",
    "longest_distance",
    "norm_eps",
    "is_gated",
)
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
"""options that further training may change"""
_NOT_FOR_DRAFTERS = (
    "adaptive_softmax_cutoff",
    "cross_self_attention",
    "no_cross_attention",
)
"""options that a block drafter does not support, and that do not affect its verifier's encoder"""
_ONLY_AT_EQUAL_WIDTH = (
    "decoder_input_dim",
    "decoder_output_dim",
    "share_all_embeddings",
)
"""options that a drafter's decoder takes only if it has the width of the verifier's"""
_OF_ENCODERS = (
    "activation_fn",
    "layernorm_embedding",
    "no_scale_embedding",
    "no_token_positional_embeddings",
)
"""options of encoders, beside those whose names begin with `encoder_`"""


Options: TypeAlias = Namespace | DictConfig | dict[str, Any]
"""of a model: flat, as on a command line, or in groups"""


def recorded_options(checkpoint: dict[str, Any]) -> Options:
    """The model's options in a checkpoint: flat, or the group `model` of a configuration."""
    return (checkpoint.get("cfg") or {}).get("model") or checkpoint.get("args")


def option_of(options: Options, name: str) -> Any:
    """An option by its flat name, in flat options or in groups; None where it is absent."""
    values = vars(options) if isinstance(options, Namespace) else options or {}
    group, _, rest = name.partition("_")
    if (
        group in ("encoder", "decoder")
        and group in values
        and isinstance(values[group], Mapping)
    ):
        values = values[group]
        name = rest
    return values[name] if name in values else None  # noqa: SIM401 (the `get` of a strict configuration raises)


def set_defaults(cfg: Options, **defaults: Any) -> None:
    """Fill in the options that the user left out; `defaults` have flat names."""
    for name, value in defaults.items():
        group, _, rest = name.partition("_")
        nested = (
            getattr(cfg, group, None)
            if group in ("encoder", "decoder") and hasattr(cfg, group)
            else None
        )
        if nested is not None:
            if rest not in nested:
                nested[rest] = value
        elif getattr(cfg, name, None) is None:
            setattr(cfg, name, value)


def take_architecture(cfg: Options, option: str) -> None:
    """Fill in options that the user has left out (absent or None) from the checkpoint that an option names, if any.

    `option`: `base_checkpoint`, or `encoder_from` of a drafter, whose decoder may differ from its verifier's and whose
    dropout is its own. A model that is loaded from a checkpoint of its own takes nothing.

    Raises `AggdecError` where a given option has another value there, or the checkpoint is no plain encoder-decoder.
    """
    path = getattr(cfg, option, None)
    if not path or is_loading_models():
        return
    source = f"{option_name(option)} {path}"
    for_drafter = option == "encoder_from"
    base = _architecture_of(source, path)
    not_taken: set[str] = set()
    if for_drafter:
        not_taken |= set(_NOT_FOR_DRAFTERS)
        if option_of(cfg, "decoder_embed_dim") not in (None, base.decoder.embed_dim):
            not_taken |= set(_ONLY_AT_EQUAL_WIDTH)
    for name, value in _options(base):
        given = option_of(cfg, name)
        is_compared = (
            not for_drafter or name.startswith("encoder_") or name in _OF_ENCODERS
        )
        if is_compared and given is not None and str(given) != str(value):
            raise AggdecError(
                f"{source}: {option_name(name)} is {value} there and {given} here: leave it out"
            )
        if name not in not_taken:
            set_defaults(cfg, **{name: value})
    for name in () if for_drafter else _DROPOUTS:
        set_defaults(cfg, **{name: getattr(base, name)})
    for side, name in (
        ("encoder", "max_source_positions"),
        ("decoder", "max_target_positions"),
    ):
        # taken though another number is given, as fairseq's tasks always do
        if getattr(base, side).learned_pos:
            setattr(cfg, name, getattr(base, name))
        else:
            set_defaults(cfg, **{name: getattr(base, name)})


def _architecture_of(source: str, path: str) -> TransformerConfig:
    """The Transformer options of a checkpoint, with fairseq's defaults; `source`: the option that names it, and it."""
    checkpoint = read_checkpoint(path)
    if not any(
        name.startswith("decoder.layers.0.encoder_attn.")
        for name in checkpoint["model"]
    ):
        raise AggdecError(f"{source}: no Transformer encoder-decoder")
    options = recorded_options(checkpoint)
    if isinstance(options, dict):
        # a root for its interpolations
        options = OmegaConf.create({"model": options}).model
    if (
        isinstance(options, Namespace)
        and getattr(options, "arch", None) in ARCH_CONFIG_REGISTRY
    ):
        # which does not take the architecture of the base's base
        with loading_models():
            ARCH_CONFIG_REGISTRY[options.arch](options)
    for name in (
        "scale_attn",
        "scale_fc",
        "scale_heads",
        "scale_resids",
        "scale_attns",
    ):
        if getattr(options, name, False):
            raise AggdecError(f"{source}: {option_name(name)} is not supported")
    return TransformerConfig.from_namespace(options)


def _options(base: TransformerConfig) -> Iterator[tuple[str, Any]]:
    """The options that determine a Transformer's output, by flat name; options without a value are left out."""
    for side in ("encoder", "decoder"):
        for name in _SIDE_OPTIONS:
            yield f"{side}_{name}", getattr(getattr(base, side), name)
    for name in _OPTIONS:
        value = getattr(base, name, None)
        if name == "share_decoder_input_output_embed":
            value = value or base.share_all_embeddings  # implies it in fairseq
        if value is not None:
            yield name, value


def register_sizes(model: str, small_decoder: int, option: str) -> None:
    """Register a model's architectures: Transformer-base, also by the model's name, big, and small for CPUs.

    `small_decoder`: layers; `option` names the checkpoint on which the model is built, see `take_architecture`.
    """
    big = Size(1024, 4096, 16, 6, 6)
    small = Size(256, 1024, 4, 4, small_decoder)
    for name, size in {
        "": SIZES["base"],
        "_base": SIZES["base"],
        "_big": big,
        "_small": small,
    }.items():
        register_model_architecture(model, model + name)(_filling_in(size, option))


def _filling_in(size: Size, option: str | None = None) -> Callable[[Options], None]:
    """What fairseq calls for `--arch`: it fills in a size, then fairseq's defaults of all other options.

    What the checkpoint of `option` has, if any, is filled in first.
    """

    def fill_in(cfg: Options) -> None:
        if option is not None:
            take_architecture(cfg, option)
        set_defaults(cfg, **size.options())
        if size.like_bart:
            bart_large_architecture(cfg)
        base_architecture(cfg)

    return fill_in


def refuse_architectures(
    cfg: TransformerConfig, by: str, further: Mapping[str, bool] | None = None
) -> None:
    """Raise `AggdecError` for a given option that block drafters and proposal heads do not support.

    `by`: the model's name for the message; `further`: more options that this model refuses, and whether they are given.
    """
    refused = {
        "--adaptive-softmax-cutoff": cfg.adaptive_softmax_cutoff is not None,
        "--cross-self-attention": cfg.cross_self_attention,
        "--no-cross-attention": cfg.no_cross_attention,
        "--quant-noise-pq": cfg.quant_noise.pq > 0,
        "--base-layers": bool(cfg.base_layers),
        **(further or {}),
    }
    for option, is_given in refused.items():
        if is_given:
            raise AggdecError(f"{option}: {by} does not support it; leave it out")


for _name, _size in SIZES.items():
    if _name not in ("base", "bart-base", "bart-large"):  # names of fairseq
        register_model_architecture(
            "bart" if _size.like_bart else "transformer", architecture(_name)
        )(_filling_in(_size))
