"""T5 and its relatives as fairseq's: T5, T5 1.1, Flan-T5, ByT5 and MADLAD-400 (`t5`), mT5 (`mt5`).

A checkpoint's vocabulary has no `<s>`, or no `<pad>`: it gets a row of zeros, and a bias that keeps it out of outputs.
"""

import re
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.families import (
    NEVER,
    WITHOUT_EFFECT,
    Converted,
    fitted,
    matrix_of,
)
from fairseq_aggdec.hub.files import Fields, Weights
from fairseq_aggdec.hub.generation import GENERATION
from fairseq_aggdec.hub.tokenizers import FIRST

_SIZES = (
    "vocab_size",
    "d_model",
    "d_kv",
    "d_ff",
    "num_layers",
    "num_decoder_layers",
    "num_heads",
    "relative_attention_num_buckets",
    "relative_attention_max_distance",
)
_DEFAULTS = {
    "layer_norm_epsilon": 1e-6,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "tie_word_embeddings": True,
}
"""transformers' values of fields that older files lack"""
LONGEST = 100_000
"""tokens of a source or an output in place of no limit, as positions are relative: more than memory holds"""
_VALUES: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "architectures": tuple(
        [name]
        for name in (
            "T5ForConditionalGeneration",
            "MT5ForConditionalGeneration",
            "T5WithLMHeadModel",
        )
    ),
    "feed_forward_proj": ("relu", "gated-gelu"),
    "is_encoder_decoder": (True,),
    "pruned_heads": ({},),
    "scale_decoder_outputs": (True, False),
    "tie_encoder_decoder": (False,),
    "tie_word_embeddings": (True, False),
}
"""the values that a field may have"""
_WITHOUT_EFFECT = WITHOUT_EFFECT | {
    "dense_act_fn",
    "dropout_rate",
    "initializer_factor",
    "is_gated_act",
    "n_positions",
    "eos_token_id",
    "pad_token_id",
}
"""fields that change no output, or that the tokenizer says, too"""

_NAME = re.compile(r"(encoder|decoder)\.block\.(\d+)\.layer\.(\d)\.(.+)\.weight")
_PARTS = {
    "encoder": ("self_attn", "final"),
    "decoder": ("self_attn", "encoder_attn", "final"),
}
"""the parts of a layer, in their order"""
_OF_PART = {
    "layer_norm": "{}_layer_norm",
    **{
        f"{x}Attention.{y}": f"{{}}.{y}_proj" for x in ("Self", "EncDec") for y in "qkv"
    },
    **{f"{x}Attention.o": "{}.out_proj" for x in ("Self", "EncDec")},
    "DenseReluDense.wi": "fc1",
    "DenseReluDense.wi_0": "fc1",
    "DenseReluDense.wi_1": "gate",
    "DenseReluDense.wo": "fc2",
}
"""the names of a part's weights, {}: of the part"""


def _faults(config: Fields) -> Iterator[str]:
    """What is missing, not known, or not supported in config.json."""
    known = {*_SIZES, *_DEFAULTS, *_VALUES, *GENERATION, *_WITHOUT_EFFECT}
    for field, value in config.items():
        if value not in _VALUES.get(field, (value,)):
            values = " or ".join(map(repr, _VALUES[field]))
            yield f"{field}: {value!r} is not supported, only {values}"
        if field not in known and not field.startswith("_"):
            yield f"{field}: is not known; delete it if it changes no output"
    for field in (*_SIZES, "layer_norm_epsilon"):
        size = config.get(field, 0)
        is_size = type(size) is int or field == "layer_norm_epsilon"
        if not (is_size and isinstance(size, int | float) and size > 0):
            yield f"{field}: is missing, or no number above 0; download the file again"


def _renamed(name: str) -> str | None:
    """fairseq's name of a weight; None: no layer reads it. One that is not known keeps its name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name.replace(".final_layer_norm.", ".layer_norm.")
    side, layer, place, weight = found.groups()
    if int(place) >= len(_PARTS[side]):
        return name
    part = _PARTS[side][int(place)]
    # in the decoder's attention to the encoder, in old files
    if weight == "EncDecAttention.relative_attention_bias":
        return None
    if (layer, weight) == ("0", "SelfAttention.relative_attention_bias"):
        return f"{side}.distance_bias.table.weight"
    ours = _OF_PART.get(weight, weight).format(part)
    return f"{side}.layers.{layer}.{ours}.weight"


def convert(
    config: Fields, start: int, weights: Weights, tokens: list[str]
) -> Converted:
    """A model in fairseq's form.

    Args:
        config: the content of config.json.
        start: the first input of the decoder, by the tokenizer's index.
        weights: as by `read_weights`.
        tokens: of the tokenizer.

    Raises:
        AggdecError: a field or a weight is missing, not known, or not supported.
    """
    is_t5 = config["model_type"] == "t5"
    by_default = {
        "num_decoder_layers": config.get("num_layers"),
        "feed_forward_proj": "relu" if is_t5 else "gated-gelu",
    }
    config = _DEFAULTS | by_default | config
    if faults := "; ".join(_faults(config)):
        raise AggdecError(f"config.json: {faults}")
    # there are rows for single distances, and for ranges up to the longest, in either direction
    buckets = config["relative_attention_num_buckets"]
    longest = config["relative_attention_max_distance"]
    if buckets < 4 or longest <= buckets // 2:
        raise AggdecError(
            f"config.json: relative_attention_max_distance: {longest} is not above half of "
            f"relative_attention_num_buckets ({buckets}, at least 4): not supported"
        )
    rows: int = config["vocab_size"]

    # the vocabulary in fairseq's order, with the symbols that a checkpoint does not have
    symbols = fitted(tokens, rows)
    for field, name in (("pad_token_id", "<pad>"), ("eos_token_id", "</s>")):
        if name in symbols and config.get(field) != symbols.index(name):
            raise AggdecError(
                f"config.json: {field}: is {config.get(field)}, and {symbols.index(name)} in the tokenizer: "
                "not supported"
            )
    missing = [name for name in FIRST if name not in symbols]
    symbols += missing
    first = [symbols.index(name) for name in FIRST]
    order = first + [row for row in range(len(symbols)) if row not in first]

    # embeddings and output
    weights = dict(weights)
    copies = ["shared", "encoder.embed_tokens", "decoder.embed_tokens"]
    embeddings = matrix_of(weights, copies, rows)
    output = embeddings
    tied = config["tie_word_embeddings"]
    scales = config.get("scale_decoder_outputs", is_t5 and tied)
    if "lm_head.weight" in weights or not tied:
        output = matrix_of(weights, ["lm_head"], rows)
    is_shared = torch.equal(output, embeddings)
    if scales and not is_shared:
        raise AggdecError(
            "lm_head differs from shared, and config.json says that they are one (tie_word_embeddings): not supported"
        )
    more = (0, 0, 0, len(missing))
    matrix = F.pad(embeddings, more)[order]
    bias = F.pad(torch.zeros(rows), (0, len(missing)), value=NEVER)[order]
    converted = {
        ours: weight
        for name, weight in weights.items()
        if (ours := _renamed(name)) is not None
    }
    # where the output is scaled, the last norm scales it
    if scales and (last := "decoder.layer_norm.weight") in converted:
        converted[last] = converted[last] * config["d_model"] ** -0.5
    converted |= {
        "encoder.embed_tokens.weight": matrix,
        "decoder.embed_tokens.weight": matrix,
        "decoder.output_projection.weight": matrix
        if is_shared
        else F.pad(output, more)[order],
        "decoder.output_projection.bias": bias,
    }

    # fairseq's names where it has any
    options = {
        "_name": "hub_t5",
        "arch": "hub_t5",
        "encoder_layers": config["num_layers"],
        "decoder_layers": config["num_decoder_layers"],
        "encoder_embed_dim": config["d_model"],
        "encoder_ffn_embed_dim": config["d_ff"],
        "encoder_attention_heads": config["num_heads"],
        "head_dim": config["d_kv"],
        "distance_buckets": buckets,
        "longest_distance": longest,
        "norm_eps": config["layer_norm_epsilon"],
        "is_gated": config["feed_forward_proj"] != "relu",
        "share_all_embeddings": is_shared,
        "first_input": order.index(start),
        "max_source_positions": LONGEST,
        "max_target_positions": LONGEST,
    }
    return Converted(options, converted, {"dict.txt": [symbols[row] for row in order]})
