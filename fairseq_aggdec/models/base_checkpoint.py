"""Building a model on top of a trained Transformer, with the architecture and the weights of its checkpoint."""

import logging
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.models.architectures import option_of, recorded_options, set_defaults
from fairseq_aggdec.models.checkpoint_weights import copy_weights, different_shapes, weights_of

logger = logging.getLogger(__name__)

_SIDE_OPTIONS = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads", "normalize_before", "learned_pos")
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
)
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
"""options that further training may change"""
_NOT_FOR_DRAFTERS = ("adaptive_softmax_cutoff", "cross_self_attention", "no_cross_attention")
"""options that a block drafter does not support, and that do not affect its verifier's encoder"""
_ONLY_AT_EQUAL_WIDTH = ("decoder_input_dim", "decoder_output_dim", "share_all_embeddings")
"""options that a drafter's decoder takes only if it has the width of the verifier's"""
_IGNORED_WEIGHTS = ("classification_heads.",)
"""beginnings of the names of weights outside encoder and decoder, in BART checkpoints"""


def take_architecture(cfg: Any, path: str) -> None:
    """Fill in options that the user has left out (absent or None) from the checkpoint of --base-checkpoint.

    Raises `AggdecError` where a given option has another value there, or the checkpoint is no plain encoder-decoder.
    """
    base = _architecture_of("--base-checkpoint", path)
    for name, value in _options(base):
        _refuse_another(cfg, name, value, f"--base-checkpoint {path}")
        set_defaults(cfg, **{name: value})
    for name in _DROPOUTS:
        set_defaults(cfg, **{name: getattr(base, name)})
    _take_positions(cfg, base)


def take_verifiers_architecture(cfg: Any, path: str) -> None:
    """As `take_architecture`, for a drafter and --encoder-from, without dropout.

    A drafter's decoder may differ from its verifier's. Another width of the encoder is refused here, other differences
    when weights are copied.
    """
    base = _architecture_of("--encoder-from", path)
    _refuse_another(cfg, "encoder_embed_dim", base.encoder.embed_dim, f"--encoder-from {path}")
    not_taken = set(_NOT_FOR_DRAFTERS)
    if option_of(cfg, "decoder_embed_dim") not in (None, base.decoder.embed_dim):
        not_taken |= set(_ONLY_AT_EQUAL_WIDTH)
    set_defaults(cfg, **{name: value for name, value in _options(base) if name not in not_taken})
    _take_positions(cfg, base)


def _refuse_another(cfg: Any, name: str, value: Any, source: str) -> None:
    """Raise `AggdecError` where the user has given an option another value than the checkpoint `source`."""
    given = option_of(cfg, name)
    if given is not None and str(given) != str(value):
        raise AggdecError(f"{source}: {option_name(name)} is {value} there and {given} here: leave it out")


def _take_positions(cfg: Any, base: TransformerConfig) -> None:
    """Take the number of learned positions from the checkpoint, though one is given, as fairseq's tasks always do."""
    for side, option in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        if getattr(base, side).learned_pos:
            setattr(cfg, option, getattr(base, option))
        else:
            set_defaults(cfg, **{option: getattr(base, option)})


def load_base(model: Any, path: str) -> None:
    """Copy a checkpoint's weights into a model that extends its architecture; log the loaded and the skipped weights.

    The decoder's method `fitting` selects among weights that a plain Transformer lacks.

    Raises `AggdecError` where a weight of a plain Transformer is missing in one of them, or has another shape.
    """
    checkpoint = read_checkpoint(path)
    options = recorded_options(checkpoint)
    state = dict(checkpoint["model"])
    model.upgrade_state_dict(state)  # names of older versions
    theirs = weights_of(state)
    ours = weights_of(model.state_dict())
    own = tuple(f"decoder.{name}" for name in model.decoder.own_weights)
    loaded, skipped = {}, []
    for name in sorted(theirs):
        value = theirs[name]
        if name.startswith(_IGNORED_WEIGHTS):
            skipped.append(f"{name} (not needed)")
        elif name.startswith(own):
            fitting = model.decoder.fitting(name.removeprefix("decoder."), value, options)
            if fitting is None:
                here = tuple(ours[name].shape) if name in ours else "none"
                skipped.append(f"{name} ({tuple(value.shape)} there, {here} here)")
            else:
                loaded[name] = fitting
        elif name not in ours:
            raise AggdecError(f"--base-checkpoint {path}: has {name}, for which a plain Transformer has no place")
        elif value.shape != ours[name].shape:
            part, _, short = name.partition(".")
            text = different_shapes(part, short, value, ours[name], model, "the model")
            raise AggdecError(f"--base-checkpoint {path}: {text}")
        else:
            loaded[name] = value
    new = sorted(ours.keys() - loaded.keys())
    missing = [name for name in new if not name.startswith(own)]
    if missing:
        raise AggdecError(
            f"--base-checkpoint {path}: lacks {', '.join(missing[:3])}, which its own options require; use another file"
        )
    copy_weights(model, loaded)
    logger.info("--base-checkpoint %s: loaded %s", path, ", ".join(loaded))
    logger.info("--base-checkpoint %s: skipped %s", path, ", ".join(skipped) or "nothing")
    logger.info("--base-checkpoint %s: new here %s", path, ", ".join(new) or "nothing")


def _architecture_of(option: str, path: str) -> TransformerConfig:
    """The Transformer options of the checkpoint named by an option, with fairseq's defaults."""
    checkpoint = read_checkpoint(path)
    if not any(name.startswith("decoder.layers.0.encoder_attn.") for name in checkpoint["model"]):
        raise AggdecError(f"{option} {path}: no Transformer encoder-decoder")
    options = recorded_options(checkpoint)
    if isinstance(options, dict):
        options = OmegaConf.create({"model": options}).model  # a root for its interpolations
    if isinstance(options, Namespace):
        # not the base of the base
        options = Namespace(**{**vars(options), "base_checkpoint": None, "encoder_from": None})
        architecture = getattr(options, "arch", None)
        if architecture in ARCH_CONFIG_REGISTRY:
            ARCH_CONFIG_REGISTRY[architecture](options)
    for name in ("scale_attn", "scale_fc", "scale_heads", "scale_resids", "scale_attns"):
        if getattr(options, name, False):
            raise AggdecError(f"{option} {path}: {option_name(name)} is not supported")
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
