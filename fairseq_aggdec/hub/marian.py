"""OPUS-MT (Marian) and Pegasus as fairseq's Transformer with a bias on its logits.

Their vocabularies are in another order than fairseq's and have no `<s>`, the decoder begins with `<pad>`, and positions
are sinusoids in an order of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.families import EOS, SPECIAL, Convert, Converted, fitted, options_of, shared_matrix

_NEVER = -1e4
"""bias of a symbol that is never chosen: its probability is 0, and the number is one in half precision, too"""
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
"""fairseq's names of transformers' functions"""
_NOT_READ = ("bos_token_id", "decoder_vocab_size", "eos_token_id", "extra_pos_embeddings", "pad_token_id")
"""fields that change no output, or are checked beside the tokens"""
_EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")


def _converted(
    config: dict[str, Any],
    weights: dict[str, Tensor],
    tokens: list[str],
    target_tokens: list[str] | None = None,
    *,
    pre_norm: bool,
) -> Converted:
    """A model of either family; `target_tokens`: those of the output where they are others."""
    is_joined = target_tokens is None
    supported: dict[str, tuple[Any, ...]] = {field: (config.get(field),) for field in _NOT_READ}
    supported |= {"activation_function": tuple(_ACTIVATIONS), "share_encoder_decoder_embeddings": (is_joined,)}
    layout = {"pre_norm": pre_norm, "norm_embedding": False, "learned": True, "static": True}
    options = options_of(config, "hub_transformer", **layout, supported=supported)
    rows = target_rows = config["vocab_size"]
    symbols = target_symbols = fitted(tokens, rows)
    order = target_order = _order(symbols, config)
    if target_tokens is not None:
        target_rows = config.get("decoder_vocab_size", rows)
        target_symbols = fitted(target_tokens, target_rows)
        target_order = _order(target_symbols, config)
    options |= {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
    options["activation_fn"] = _ACTIVATIONS[options["activation_fn"]]

    bias = weights.pop("final_logits_bias", torch.zeros(1, target_rows))
    if bias.shape != (1, target_rows):
        raise AggdecError(f"final_logits_bias: has the shape {tuple(bias.shape)}, not (1, {target_rows})")
    if is_joined:
        words = target_words = shared_matrix(weights, rows)
    else:
        source, *target = [{name: weights.pop(name)} if name in weights else {} for name in _EMBEDDINGS]
        words, target_words = shared_matrix(source, rows), shared_matrix(target[0] | target[1], target_rows)
    read = _with_new_row(target_words)[target_order]
    read[EOS] = target_words[config["decoder_start_token_id"]]  # fairseq begins with EOS, which it reads nowhere else
    weights["encoder.embed_tokens.weight"] = _with_new_row(words)[order]
    weights["decoder.embed_tokens.weight"] = read
    weights["decoder.output_projection.weight"] = _with_new_row(target_words)[target_order]
    weights["decoder.output_projection.bias"] = F.pad(bias[0], (0, 1), value=_NEVER)[target_order]
    for side in ("encoder", "decoder"):
        name = f"{side}.embed_positions.weight"
        table = weights.get(name, sinusoids(config["max_position_embeddings"], config["d_model"]))
        weights[name] = F.pad(table, (0, 0, 2, 0))  # fairseq's positions begin behind the number of its <pad>
    return Converted(
        options,
        weights,
        _named(symbols, order),
        None if is_joined else _named(target_symbols, target_order),
    )


def _order(symbols: Sequence[str], config: dict[str, Any]) -> list[int]:
    """The row of each of fairseq's symbols, special ones first; behind the last one where there is no `<s>`."""
    rows = [*symbols, "<s>"]
    if missing := [name for name in SPECIAL if name not in rows]:
        raise AggdecError(f"the tokenizer has no {missing[0]}, which a model of {config['model_type']} needs")
    first = [rows.index(name) for name in SPECIAL]
    for number, field in zip(first[1:3], ("pad_token_id", "eos_token_id"), strict=True):
        if config[field] != number:
            raise AggdecError(f"config.json: {field}: is {config[field]}, and {number} in the tokenizer: not supported")
    return first + [number for number in range(len(symbols)) if number not in first]


def _named(symbols: Sequence[str], order: Sequence[int]) -> list[str]:
    return [*SPECIAL, *(symbols[number] for number in order[len(SPECIAL) :])]


def _with_new_row(matrix: Tensor) -> Tensor:
    return F.pad(matrix, (0, 0, 0, 1))


def sinusoids(positions: int, dim: int) -> Tensor:
    """The table of positions, positions x dim: all sines, then all cosines."""
    angles = torch.arange(positions, dtype=torch.double)[:, None] / 10000 ** (torch.arange(0, dim, 2).double() / dim)
    return torch.cat([angles.sin(), angles.cos()[:, : dim // 2]], dim=1).float()


FAMILIES: dict[str, Convert] = {
    "marian": partial(_converted, pre_norm=False),
    "pegasus": partial(_converted, pre_norm=True),
}
"""by config.json's `model_type`"""
