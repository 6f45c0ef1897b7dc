"""Starting a drafter from a verifier's checkpoint, and recognising the verifier's encoder in decoding."""

import hashlib
import logging
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.models.architectures import option_of, recorded_options
from fairseq_aggdec.models.checkpoint_weights import copy_weights, different_shapes, weights_of
from fairseq_aggdec.models.transformer_parts import layers_of

logger = logging.getLogger(__name__)

FINGERPRINT_SIZE = hashlib.sha256().digest_size
_DECIDING_OPTIONS = (
    "encoder_attention_heads",
    "encoder_normalize_before",
    "activation_fn",
    "no_scale_embedding",
    "no_token_positional_embeddings",
)
"""options that change an encoder's output and no weight's shape"""


def encoder_fingerprint(encoder: Any) -> Tensor:
    """A SHA-256, as 32 integers from 0 to 255, which is equal for encoders that compute the same.

    It covers the weights, the number of heads, the activation function, the place of the norms, and the scale of the
    embeddings. Weights are rounded to half precision, so that a copy in half precision has the same fingerprint.
    """
    digest = hashlib.sha256()
    for layer in layers_of(encoder):
        facts = (layer.self_attn.num_heads, layer.activation_fn.__name__, bool(layer.normalize_before))
        digest.update(repr(facts).encode())
    digest.update(repr((round(float(encoder.embed_scale), 6), encoder.padding_idx)).encode())
    for name, value in sorted(weights_of(encoder.state_dict()).items()):
        digest.update(f"{name} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().half().contiguous().numpy().tobytes())
    # int32, since fairseq's script for averaging checkpoints sums integers
    return torch.tensor(list(digest.digest()), dtype=torch.int32)


def warm_start(model: Any, encoder_from: str | None, decoder_from: str | None) -> None:
    """Copy a verifier's weights into a new drafter, and log the loaded and the skipped weights.

    The whole encoder is copied, and its fingerprint recorded if it is frozen. Decoder weights are copied where name and
    shape are the same, so that a shallower drafter gets the lower layers. There may be two checkpoints, or none.

    Raises:
        AggdecError: the encoder does not fit, or is to be frozen without a checkpoint; the decoder's checkpoint has
            another number of symbols, or none of its weights fits.
    """
    if model.cfg.freeze_encoder and not encoder_from:
        raise AggdecError("--freeze-encoder without --encoder-from would keep random weights: name the verifier")
    checkpoints = {path: read_checkpoint(path) for path in {encoder_from, decoder_from} if path}
    if encoder_from:
        _load_encoder(model, encoder_from, checkpoints[encoder_from])
        if model.cfg.freeze_encoder:
            model.encoder_fingerprint.copy_(encoder_fingerprint(model.encoder))
    if decoder_from:
        _load_decoder(model, decoder_from, checkpoints[decoder_from])
    model.save_exactly(f"--encoder-from {encoder_from}")


def _load_encoder(model: Any, path: str, checkpoint: dict[str, Any]) -> None:
    _compare_options(model, path, checkpoint)
    theirs = weights_of(checkpoint["model"], "encoder.")
    ours = weights_of(model.encoder.state_dict())
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs or name not in ours:
            where, other = ("the drafter", "it") if name in ours else ("it", "the drafter")
            raise AggdecError(
                f"--encoder-from {path}: {where} has encoder.{name} and {other} has not: give the drafter the encoder "
                "options of that checkpoint"
            )
        if theirs[name].shape != ours[name].shape:
            text = different_shapes("encoder", name, theirs[name], ours[name], model, "the drafter")
            raise AggdecError(f"--encoder-from {path}: {text}")
    copy_weights(model.encoder, theirs)
    logger.info("--encoder-from %s: loaded %s", path, ", ".join(f"encoder.{name}" for name in sorted(theirs)))


def _load_decoder(model: Any, path: str, checkpoint: dict[str, Any]) -> None:
    theirs = weights_of(checkpoint["model"], "decoder.")
    ours = weights_of(model.decoder.state_dict())
    frozen = frozen_names(model.decoder)
    loaded, skipped = {}, []
    for name, value in sorted(theirs.items()):
        if name not in ours:
            skipped.append(f"decoder.{name} (not in the drafter)")
        elif name in frozen:
            skipped.append(f"decoder.{name} (shared with the frozen encoder)")
        elif value.shape != ours[name].shape:
            if name in ("embed_tokens.weight", "output_projection.weight") and value.shape[1:] == ours[name].shape[1:]:
                text = different_shapes("decoder", name, value, ours[name], model, "the drafter")
                raise AggdecError(f"--decoder-from {path}: {text}")
            skipped.append(f"decoder.{name} ({tuple(value.shape)} there, {tuple(ours[name].shape)} here)")
        else:
            loaded[name] = value
    if not loaded:
        raise AggdecError(f"--decoder-from {path}: nothing of its decoder fits; leave the option out")
    copy_weights(model.decoder, loaded)
    new = sorted(ours.keys() - theirs.keys())
    logger.info("--decoder-from %s: loaded %s", path, ", ".join(f"decoder.{name}" for name in loaded))
    logger.info("--decoder-from %s: skipped %s", path, ", ".join(skipped) or "nothing")
    logger.info("--decoder-from %s: new in the drafter %s", path, ", ".join(f"decoder.{name}" for name in new))


def _compare_options(model: Any, path: str, checkpoint: dict[str, Any]) -> None:
    """Raise `AggdecError` for an encoder with fitting weights and another output."""
    recorded = recorded_options(checkpoint)
    for name in _DECIDING_OPTIONS:
        there, here = option_of(recorded, name), getattr(model.cfg, name)
        if there is not None and str(there) != str(here):
            raise AggdecError(
                f"--encoder-from {path}: {option_name(name)} is {there} there and {here} for the drafter: make it equal"
            )
