"""OPUS-MT (Marian) and Pegasus as fairseq's Transformer with a bias on its logits.

Their vocabularies are in another order than fairseq's and have no `<s>`, the decoder begins with `<pad>`, and positions
are sinusoids in an order of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.families import Convert, Converted, begin_with, fitted, options_of, shared_matrix
from fairseq_aggdec.hub.tokenizers import FIRST

_NEVER = -1e4
"""bias of a symbol whose probability is 0; half precision has the number, too"""
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
"""fairseq's names of transformers' functions"""
_ANY = ("bos_token_id", "decoder_vocab_size", "eos_token_id", "extra_pos_embeddings", "pad_token_id")
"""fields that change no output, or are checked where the vocabulary is"""


def _converted(
    config: dict[str, Any],
    weights: dict[str, Tensor],
    tokens: list[str],
    target_tokens: list[str] | None = None,
    *,
    pre_norm: bool,
) -> Converted:
    """A model of either family; `target_tokens`: those of the output where they are others."""
    is_joined = target_tokens is None and config.get("share_encoder_decoder_embeddings", True)
    supported: dict[str, tuple[Any, ...]] = {field: (config.get(field),) for field in _ANY}
    supported["activation_function"] = tuple(_ACTIVATIONS)
    supported["share_encoder_decoder_embeddings"] = (is_joined,)
    layout = {"pre_norm": pre_norm, "norm_embedding": False, "learned": True, "static": True}
    options = options_of(config, "hub_transformer", **layout, supported=supported)
    options["activation_fn"] = _ACTIVATIONS[options["activation_fn"]]

    weights, rows = dict(weights), config["vocab_size"]
    if is_joined:
        symbols, _, words = target_symbols, target_order, target_words = _side(config, tokens, weights, rows)
    else:
        names = [f"{side}.weight" for side in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")]
        source, *target = [{name: weights.pop(name)} if name in weights else {} for name in names]
        symbols, _, words = _side(config, tokens, source, rows)
        rows = config.get("decoder_vocab_size", rows)
        target_symbols, target_order, target_words = _side(config, target_tokens or tokens, target[0] | target[1], rows)
    bias = weights.pop("final_logits_bias", torch.zeros(1, rows))
    if bias.shape != (1, rows):
        raise AggdecError(f"final_logits_bias has the shape {tuple(bias.shape)}, not (1, {rows}); download it again")
    weights["encoder.embed_tokens.weight"] = words
    weights["decoder.output_projection.weight"] = target_words
    begin_with(target_words[target_order.index(config["decoder_start_token_id"])], options, weights)
    weights["decoder.output_projection.bias"] = F.pad(bias[0], (0, 1), value=_NEVER)[target_order]
    for name in ("encoder.embed_positions.weight", "decoder.embed_positions.weight"):
        table = weights.get(name, _sinusoids(config["max_position_embeddings"], config["d_model"]))
        weights[name] = F.pad(table, (0, 0, 2, 0))  # fairseq's positions begin behind the number of its <pad>
    return Converted(options, weights, symbols, None if is_joined else target_symbols)


def _side(
    config: dict[str, Any], tokens: list[str], weights: dict[str, Tensor], rows: int
) -> tuple[list[str], list[int], Tensor]:
    """One side's symbols in fairseq's order, the row of each, and the embeddings in this order, taken out of `weights`.

    Where there is no `<s>`, it has a row of zeros behind the last one.
    """
    symbols = [*fitted(tokens, rows), "<s>"]
    if missing := [name for name in FIRST if name not in symbols]:
        raise AggdecError(f"the tokenizer has no {missing[0]}, which a model of {config['model_type']} needs")
    first = [symbols.index(name) for name in FIRST]
    for number, field in zip(first[1:3], ("pad_token_id", "eos_token_id"), strict=True):
        if config[field] != number:
            raise AggdecError(f"config.json: {field}: is {config[field]}, and {number} in the tokenizer: not supported")
    order = first + [number for number in range(rows) if number not in first]
    return [symbols[number] for number in order], order, F.pad(shared_matrix(weights, rows), (0, 0, 0, 1))[order]


def _sinusoids(positions: int, dim: int) -> Tensor:
    """The table of positions, positions x dim: all sines, then all cosines."""
    angles = torch.arange(positions, dtype=torch.double)[:, None] / 10000 ** (torch.arange(0, dim, 2).double() / dim)
    return torch.cat([angles.sin(), angles.cos()[:, : dim // 2]], dim=1).float()


FAMILIES: dict[str, Convert] = {
    "marian": partial(_converted, pre_norm=False),
    "pegasus": partial(_converted, pre_norm=True),
}
"""by config.json's `model_type`"""
