"""Families of Hugging Face's models as fairseq's: BART, mBART-25 and mBART-50, M2M-100 and NLLB.

A family's function checks each field of config.json, and gives fairseq's options, the weights by fairseq's names with
the rows of the vocabulary in fairseq's order, and the symbols of its dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.generation import GENERATION
from fairseq_aggdec.hub.tokenizers import FIRST, symbol


@dataclass
class Converted:
    """A model in fairseq's form."""

    options: dict[str, Any]
    """of the model, flat, with its architecture's name as `_name` and `arch`"""
    weights: dict[str, Tensor]
    """by fairseq's names"""
    symbols: list[str]
    """of the dictionary, by fairseq's number, with fairseq's four special symbols"""
    target_symbols: list[str] | None = None
    """of the target side, where its dictionary is another"""


Convert = Callable[..., Converted]
"""Makes the model of config.json's content, `read_weights`, the tokens, and those of the target side
or None. `decoder_start_token_id` is in the first, the number of one of the tokens."""

EOS = FIRST.index("</s>")

_WITHOUT_EFFECT = frozenset(
    "activation_dropout architectures attention_dropout chunk_size_feed_forward classif_dropout classifier_dropout "
    "decoder_layerdrop dropout dtype encoder_layerdrop eos_token_ids finetuning_task gradient_checkpointing "
    "hidden_size id2label init_std is_decoder label2id model_type num_attention_heads num_hidden_layers num_labels "
    "output_past prefix problem_type replacing_rate return_dict save_step sep_token_id student_decoder_layers "
    "student_encoder_layers task_specific_params tf_legacy_loss tokenizer_class torch_dtype torchscript "
    "transformers_version use_bfloat16 use_return_dict xla_device".split()
)
"""fields of config.json that change no output, as all whose names begin with `_`"""

_SIDES = ("encoder", "decoder")
_OF_A_SIDE = {"layers": "layers", "ffn_dim": "ffn_embed_dim", "attention_heads": "attention_heads"}
"""fairseq's names of sizes in config.json, both behind that of the side"""

_ALWAYS: dict[str, tuple[Any, ...]] = {
    "activation_function": ("relu", "gelu"),
    "add_bias_logits": (False,),
    "add_cross_attention": (False,),
    "do_blenderbot_90_layernorm": (False,),
    "extra_pos_embeddings": (2,),
    "is_encoder_decoder": (True,),
    "pruned_heads": ({},),
    "scale_embedding": (True, False),
    "tie_encoder_decoder": (False,),
    "tie_word_embeddings": (True,),
}
"""the values that a field may have, unless a family says otherwise; all but two have one value that is transformers'"""


def options_of(
    config: dict[str, Any],
    arch: str,
    *,
    pre_norm: bool,
    norm_embedding: bool,
    learned: bool,
    static: bool,
    supported: dict[str, tuple[Any, ...]],
) -> dict[str, Any]:
    """fairseq's options of a model. Raises `AggdecError` for a field that is missing, not known, or not supported.

    Args:
        config: the content of config.json.
        arch: fairseq's name of the architecture.
        pre_norm: layer norms before attention and feed-forward layers, and one behind the last layer.
        norm_embedding: a layer norm behind the embeddings.
        learned: fairseq reads the table of positions from the weights.
        static: transformers computes the table of positions.
        supported: the values that a field may have in this family.
    """
    old = {"normalize_before": pre_norm, "add_final_layer_norm": pre_norm, "normalize_embedding": norm_embedding}
    old["static_position_embeddings"] = static
    supported = _ALWAYS | {field: (value,) for field, value in old.items()} | supported
    sizes = {"d_model", "max_position_embeddings", "vocab_size", *(f"{x}_{y}" for x in _SIDES for y in _OF_A_SIDE)}
    for field, value in config.items():
        if field in supported and value not in supported[field]:
            known = " or ".join(map(repr, supported[field]))
            family = config["model_type"]
            raise AggdecError(f"config.json: {field}: {value!r} is not supported for {family}, only {known}")
        if field not in {*supported, *sizes, *GENERATION, *_WITHOUT_EFFECT} and not field.startswith("_"):
            raise AggdecError(f"config.json: {field}: is not known; delete it if it changes no output")
    for field in (*sorted(sizes), "activation_function", "eos_token_id", "pad_token_id"):
        if field not in config or (field in sizes and not (type(config[field]) is int and config[field] > 0)):
            raise AggdecError(f"config.json: {field}: is missing, or no number above 0; download the file again")
    return {
        "_name": arch,
        "arch": arch,
        "task": "translation",  # fairseq's BARTModel reads it
        **{f"{side}_{name}": config[f"{side}_{field}"] for side in _SIDES for field, name in _OF_A_SIDE.items()},
        **{f"{side}_embed_dim": config["d_model"] for side in _SIDES},
        **{f"max_{side}_positions": config["max_position_embeddings"] for side in ("source", "target")},
        "activation_fn": config["activation_function"],
        "no_scale_embedding": not config.get("scale_embedding", config["model_type"] == "m2m_100"),
        "share_all_embeddings": True,
        "share_decoder_input_output_embed": True,
        **{f"{side}_normalize_before": pre_norm for side in _SIDES},
        **{f"{side}_learned_pos": learned for side in _SIDES},
        "layernorm_embedding": norm_embedding,
    }


def fitted(tokens: list[str], rows: int) -> list[str]:
    """fairseq's symbol of each row of the embeddings. Up to 127 rows at the end may have no token, and `<mask>` no row.

    Raises `AggdecError` where there are more or fewer.
    """
    symbols = [symbol(token, number) for number, token in enumerate(tokens)]
    if len(symbols) == rows + 1 and symbols[-1] == "<mask>":  # bart-large-cnn
        symbols.pop()
    if not len(symbols) <= rows < len(symbols) + 128:
        raise AggdecError(
            f"a vocabulary that does not fit: the tokenizer has {len(symbols)} tokens, config.json {rows} "
            "(vocab_size); download the tokenizer of this model"
        )
    return symbols + [symbol("", number) for number in range(len(symbols), rows)]


def shared_matrix(weights: dict[str, Tensor], rows: int) -> Tensor:
    """Take the matrix of all embeddings, and its copies, out of a model's weights.

    Raises `AggdecError` where there is none, its copies differ, or it has another number of rows.
    """
    names = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    copies = {name: weights.pop(name) for name in names if name in weights}
    shared = next(iter(copies.values()), torch.empty(0))
    if len(shared) != rows:
        raise AggdecError(f"{names[0]} has {len(shared)} rows, config.json {rows} (vocab_size); download both again")
    for name, copy in copies.items():
        if not torch.equal(copy, shared):
            raise AggdecError(f"{name} differs from {next(iter(copies))}: models with both are not supported")
    return shared


def begin_with(start: Tensor, options: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Let the decoder read `start` where fairseq begins an output with EOS, which is no other input of the decoder."""
    options |= {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
    weights["decoder.embed_tokens.weight"] = weights["decoder.output_projection.weight"].clone()
    weights["decoder.embed_tokens.weight"][EOS] = start


def _converted(
    config: dict[str, Any], weights: dict[str, Tensor], tokens: list[str], _: None, *, arch: str, **layout: bool
) -> Converted:
    """A model whose vocabulary is in fairseq's order, with one matrix for all embeddings."""
    numbers = {f"{name}_token_id": (number,) for number, name in enumerate(("bos", "pad", "eos", "unk"))}
    options = options_of(config, arch, **layout, supported=numbers)
    symbols = fitted(tokens, config["vocab_size"])
    if symbols[: len(FIRST)] != FIRST:
        raise AggdecError(f"a tokenizer that begins with {', '.join(symbols[:4])} is not supported")
    if weights.pop("final_logits_bias", torch.zeros(1)).any():
        raise AggdecError(f"final_logits_bias: is not zero, which is not supported for {config['model_type']}")
    shared = shared_matrix(weights, len(symbols))
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        weights[f"{name}.weight"] = shared
    start = config["decoder_start_token_id"]
    if start != EOS:  # mBART-25
        begin_with(shared[start], options, weights)
    return Converted(options, weights, symbols)


FAMILIES: dict[str, Convert] = {
    "bart": partial(_converted, arch="bart_large", pre_norm=False, norm_embedding=True, learned=True, static=False),
    "mbart": partial(_converted, arch="mbart_large", pre_norm=True, norm_embedding=True, learned=True, static=False),
    "m2m_100": partial(_converted, arch="transformer", pre_norm=True, norm_embedding=False, learned=False, static=True),
}
"""by config.json's `model_type`; M2M-100 and NLLB are one"""
