"""Starting a model from the weights of another checkpoint, and recognising a verifier's encoder in decoding."""

import hashlib
import logging
import re
from collections.abc import Callable

import torch
from fairseq.models import BaseFairseqModel, FairseqEncoder
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.compat.training import frozen_names
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.architectures import option_of, recorded_options
from fairseq_aggdec.models.hub_t5 import T5Encoder
from fairseq_aggdec.models.transformer_parts import layers_of

logger = logging.getLogger(__name__)

FINGERPRINT_SIZE = hashlib.sha256().digest_size
_BY_SYMBOL = ("embed_tokens.weight", "output_projection.weight")
"""ends of the names of weights with a row for each symbol"""
# entries of a Transformer's state: version numbers, position tables and copies
_NOT_WEIGHTS = re.compile(
    r"(^|\.)version$|embed_positions\.(_float_tensor|weights)$"
    # copies that fairseq 0.12.2 keeps in its encoder layers
    r"|(in_proj|out_proj|fc1|fc2)_(weight|bias)$"
)


def encoder_fingerprint(encoder: FairseqEncoder) -> Tensor:
    """A SHA-256, as 32 integers from 0 to 255, which is equal for encoders that compute the same.

    It covers the weights, the number of heads, the activation function, the place of the norms, the scale of the
    embeddings, and of T5 the longest distance and the epsilon of norms. Weights are rounded to half precision, so that
    a copy in half precision has the same fingerprint.
    """
    digest = hashlib.sha256()
    for layer in layers_of(encoder):
        facts = (
            layer.self_attn.num_heads,
            layer.activation_fn.__name__,
            bool(layer.normalize_before),
        )
        digest.update(repr(facts).encode())
    digest.update(
        repr((round(float(encoder.embed_scale), 6), encoder.padding_idx)).encode()
    )
    if isinstance(encoder, T5Encoder):
        of_t5 = (encoder.distance_bias.longest, encoder.layer_norm.eps)
        digest.update(repr(of_t5).encode())
    for name, value in sorted(_weights_of(encoder.state_dict()).items()):
        digest.update(f"{name} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().half().contiguous().numpy().tobytes())
    # int32, since fairseq's script for averaging checkpoints sums integers
    return torch.tensor(list(digest.digest()), dtype=torch.int32)


def warm_start(
    model: BaseFairseqModel, encoder_from: str | None, decoder_from: str | None
) -> None:
    """Copy a verifier's weights into a new drafter, and log the loaded and the skipped weights.

    The whole encoder is copied, and its fingerprint recorded if it is frozen. Decoder weights are copied where name and
    shape are the same, so that a shallower drafter gets the lower layers. There may be two checkpoints, or none.

    Raises:
        AggdecError: the encoder does not fit, or is to be frozen without a checkpoint; the decoder's checkpoint has
            another number of symbols, or none of its weights fits.
    """
    if model.cfg.freeze_encoder and not encoder_from:
        raise AggdecError(
            "--freeze-encoder without --encoder-from would keep random weights: name the verifier"
        )
    checkpoints = {
        path: _weights_in(path) for path in {encoder_from, decoder_from} if path
    }
    if encoder_from:
        take_weights(
            model,
            f"--encoder-from {encoder_from}",
            checkpoints[encoder_from],
            "encoder.",
        )
        if model.cfg.freeze_encoder:
            model.encoder_fingerprint.copy_(encoder_fingerprint(model.encoder))
    if decoder_from:
        frozen = frozen_names(model)

        def fitting(name: str, theirs: Tensor, ours: Tensor | None) -> Tensor | str:
            if ours is None:
                return "not in the drafter"
            if name in frozen:
                return "shared with the frozen encoder"
            # which is a mistake
            has_other_symbols = (
                name.endswith(_BY_SYMBOL) and theirs.shape[1:] == ours.shape[1:]
            )
            return (
                theirs
                if theirs.shape == ours.shape or has_other_symbols
                else shapes_of(theirs, ours)
            )

        if not take_weights(
            model,
            f"--decoder-from {decoder_from}",
            checkpoints[decoder_from],
            "decoder.",
            fitting,
            ("",),
        ):
            raise AggdecError(
                f"--decoder-from {decoder_from}: nothing of its decoder fits; leave the option out"
            )
    model.save_exactly(f"--encoder-from {encoder_from}")


def take_weights(
    model: BaseFairseqModel,
    source: str,
    state: dict[str, Tensor],
    part: str,
    fitting: Callable[[str, Tensor, Tensor | None], Tensor | str] | None = None,
    optional: tuple[str, ...] = (),
) -> dict[str, Tensor]:
    """Copy the weights of a model's part from a checkpoint, log what is loaded and what is skipped, and return it.

    Args:
        source: the option that names the checkpoint, with its value.
        state: the checkpoint's weights.
        part: beginning of the names of the part's weights.
        fitting: maps an optional weight's name, its value in the checkpoint, and that in the model, if any, to the
            value to take, or to the reason why it is skipped.
        optional: beginnings of the names of weights that either side may lack.

    Raises `AggdecError` where another weight is missing on one side, or a weight has another shape.
    """
    # weights that one side lacks and must not
    theirs = _weights_of(state, part)
    ours = _weights_of(model.state_dict(), part)
    needed = {name for name in theirs | ours if not name.startswith(optional)}
    for verb, names in (("has", theirs.keys() - ours), ("lacks", ours.keys() - theirs)):
        if wrong := ", ".join(sorted(needed & names)[:3]):
            raise AggdecError(
                f"{source}: {verb} {wrong}, unlike a Transformer with its options; use another file"
            )
    # what fits, and what is skipped
    loaded: dict[str, Tensor] = {}
    skipped = []
    for name in sorted(theirs):
        found = (
            theirs[name]
            if fitting is None or name in needed
            else fitting(name, theirs[name], ours.get(name))
        )
        if isinstance(found, str):
            skipped.append(f"{name} ({found})")
        elif found.shape != ours[name].shape:
            side = "source" if name.startswith("encoder.") else "target"
            symbols = len(getattr(model, name.split(".")[0]).dictionary)
            raise AggdecError(
                f"{source}: {name} is {shapes_of(found, ours[name])}, where the {side} dictionary (in the data folder) "
                f"has {symbols} symbols: use the verifier's data-bin"
            )
        else:
            loaded[name] = found
    # copy and log
    with torch.no_grad():
        for name, value in loaded.items():
            ours[name].copy_(value)
    new = sorted(ours.keys() - theirs.keys())
    for what, all_of_them in (
        ("loaded", loaded),
        ("skipped", skipped),
        ("new here", new),
    ):
        logger.info("%s: %s %s", source, what, ", ".join(all_of_them) or "nothing")
    return loaded


def _weights_in(path: str) -> dict[str, Tensor]:
    """The weights of a checkpoint; of T5 without its decoder's layers, which compute otherwise than a drafter's."""
    checkpoint = read_checkpoint(path)
    weights: dict[str, Tensor] = checkpoint["model"]
    if option_of(recorded_options(checkpoint), "distance_buckets") is None:
        return weights
    return {
        name: weight
        for name, weight in weights.items()
        if not name.startswith("decoder.layers.")
    }


def _weights_of(state: dict[str, Tensor], part: str = "") -> dict[str, Tensor]:
    """The weights of a model's state whose names begin with `part`."""
    return {
        name: state[name]
        for name in state
        if name.startswith(part) and not _NOT_WEIGHTS.search(name)
    }


def shapes_of(theirs: Tensor, ours: Tensor | None) -> str:
    """The shapes of a weight in a checkpoint and in the model, for a message."""
    here = "none" if ours is None else " x ".join(map(str, ours.shape))
    return f"{' x '.join(map(str, theirs.shape))} there, {here} here"
