"""Families of Hugging Face's models as fairseq's: BART, mBART, M2M-100 and NLLB, OPUS-MT (Marian), Pegasus.

Each field of config.json is checked; the weights get fairseq's names, and the rows of the vocabulary its order. The
vocabularies of Marian and Pegasus are in another one and have no `<s>`, and their positions are sinusoids in an order
of their own, which fairseq reads as learned ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
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


EOS = FIRST.index("</s>")
_NEVER = -1e4
"""bias of a symbol whose probability is 0; half precision has the number, too"""

_WITHOUT_EFFECT = frozenset(
    "activation_dropout architectures attention_dropout bos_token_id chunk_size_feed_forward classif_dropout "
    "classifier_dropout decoder_layerdrop decoder_vocab_size dropout dtype encoder_layerdrop eos_token_ids "
    "extra_pos_embeddings finetuning_task gradient_checkpointing hidden_size id2label init_std is_decoder label2id "
    "model_type num_attention_heads num_hidden_layers num_labels output_past prefix problem_type replacing_rate "
    "return_dict save_step sep_token_id student_decoder_layers student_encoder_layers task_specific_params "
    "tf_legacy_loss tokenizer_class torch_dtype torchscript transformers_version unk_token_id use_bfloat16 "
    "use_return_dict xla_device".split()
)
"""fields of config.json that change no output beyond the vocabulary's, as all whose names begin with `_`"""

_SIDES = ("encoder", "decoder")
_OF_A_SIDE = {
    "layers": "layers",
    "ffn_dim": "ffn_embed_dim",
    "attention_heads": "attention_heads",
}
"""fairseq's names of sizes in config.json, both behind that of the side"""
_SIZES = {
    "d_model",
    "max_position_embeddings",
    "vocab_size",
    *(f"{x}_{y}" for x in _SIDES for y in _OF_A_SIDE),
}
_NEEDED = ("activation_function", "eos_token_id", "pad_token_id")

_ALWAYS: dict[str, tuple[Any, ...]] = {
    "activation_function": ("gelu", "relu", "swish"),
    "add_bias_logits": (False,),
    "add_cross_attention": (False,),
    "do_blenderbot_90_layernorm": (False,),
    "is_encoder_decoder": (True,),
    "pruned_heads": ({},),
    "scale_embedding": (True, False),
    "tie_encoder_decoder": (False,),
    "tie_word_embeddings": (True,),
}
"""the values that a field may have; all but two have one value that is transformers'"""


def _options(
    config: dict[str, Any], arch: str, pre_norm: bool, is_joined: bool
) -> dict[str, Any]:
    """fairseq's options of a model; see `_converted`.

    Raises `AggdecError` for a field that is missing, not known, or not supported.
    """
    is_bart = "bart" in arch
    supported = _ALWAYS | {
        "add_final_layer_norm": (pre_norm,),
        "normalize_before": (pre_norm,),
        "normalize_embedding": (is_bart,),
        "share_encoder_decoder_embeddings": (is_joined,),
        "static_position_embeddings": (not is_bart,),
    }
    for field, value in config.items():
        if field in supported and value not in supported[field]:
            known = " or ".join(map(repr, supported[field]))
            family = config["model_type"]
            raise AggdecError(
                f"config.json: {field}: {value!r} is not supported for {family}, only {known}"
            )
        if field not in {
            *supported,
            *_SIZES,
            *_NEEDED,
            *GENERATION,
            *_WITHOUT_EFFECT,
        } and not field.startswith("_"):
            raise AggdecError(
                f"config.json: {field}: is not known; delete it if it changes no output"
            )
    for field in (*sorted(_SIZES), *_NEEDED):
        if field not in config or (
            field in _SIZES and not (type(config[field]) is int and config[field] > 0)
        ):
            raise AggdecError(
                f"config.json: {field}: is missing, or no number above 0; download the file again"
            )
    return {
        "_name": arch,
        "arch": arch,
        "task": "translation",  # fairseq's BARTModel reads it
        **{
            f"{side}_{name}": config[f"{side}_{field}"]
            for side in _SIDES
            for field, name in _OF_A_SIDE.items()
        },
        **{f"{side}_embed_dim": config["d_model"] for side in _SIDES},
        **{
            f"max_{side}_positions": config["max_position_embeddings"]
            for side in ("source", "target")
        },
        "activation_fn": config["activation_function"],
        "no_scale_embedding": not config.get(
            "scale_embedding", config["model_type"] == "m2m_100"
        ),
        "share_all_embeddings": True,
        "share_decoder_input_output_embed": True,
        "share_source_output_embed": is_joined,  # of `hub_transformer`
        **{f"{side}_normalize_before": pre_norm for side in _SIDES},
        **{f"{side}_learned_pos": arch != "transformer" for side in _SIDES},
        "layernorm_embedding": is_bart,
    }


def _fitted(tokens: list[str], rows: int) -> list[str]:
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


def _matrix(weights: dict[str, Tensor], names: list[str], rows: int) -> Tensor:
    """Take a matrix of embeddings, and its copies, out of a model's weights.

    Raises `AggdecError` where there is none, its copies differ, or it has another number of rows.
    """
    copies = {
        name: weights.pop(f"{name}.weight")
        for name in names
        if f"{name}.weight" in weights
    }
    first = next(iter(copies.values()), torch.empty(0))
    if len(first) != rows:
        raise AggdecError(
            f"{names[0]} has {len(first)} rows, config.json {rows} (vocab_size); download both again"
        )
    for name, copy in copies.items():
        if not torch.equal(copy, first):
            raise AggdecError(
                f"{name} differs from {next(iter(copies))}: models with both are not supported"
            )
    return first


def _order(config: dict[str, Any], symbols: list[str], rows: int) -> list[int]:
    """The number of each of fairseq's symbols among a side's `symbols`; `rows`: the number of those with embeddings."""
    if missing := [name for name in FIRST if name not in symbols]:
        raise AggdecError(
            f"the tokenizer has no {missing[0]}, which a model of {config['model_type']} needs"
        )
    first = [symbols.index(name) for name in FIRST]
    for number, field in zip(first[1:3], ("pad_token_id", "eos_token_id"), strict=True):
        if config[field] != number:
            raise AggdecError(
                f"config.json: {field}: is {config[field]}, and {number} in the tokenizer: not supported"
            )
    return first + [number for number in range(rows) if number not in first]


def _converted(
    config: dict[str, Any],
    weights: dict[str, Tensor],
    tokens: list[str],
    target_tokens: list[str] | None = None,
    *,
    arch: str,
    pre_norm: bool,
) -> Converted:
    """A model in fairseq's form.

    Args:
        config: the content of config.json, and in any case `decoder_start_token_id`.
        weights: as by `read_weights`.
        tokens: of both sides, or of the source.
        target_tokens: those of the output where they are others.
        arch: fairseq's name of the architecture.
        pre_norm: layer norms before attention and feed-forward layers, and one behind the last layer.
    """
    weights, has_bias = dict(weights), arch == "hub_transformer"
    is_joined = target_tokens is None and (
        not has_bias or config.get("share_encoder_decoder_embeddings", True)
    )
    options = _options(config, arch, pre_norm, is_joined)
    inputs, outputs = (
        ["shared", "encoder.embed_tokens"],
        ["decoder.embed_tokens", "lm_head"],
    )
    sides = [(tokens, config["vocab_size"], inputs + outputs)]
    if not is_joined:
        target_rows = config.get("decoder_vocab_size", config["vocab_size"])
        sides = [
            (tokens, config["vocab_size"], inputs[1:]),
            (target_tokens or tokens, target_rows, outputs),
        ]
    dictionaries = []
    for side, rows, names in sides:
        symbols, matrix = _fitted(side, rows), _matrix(weights, names, rows)
        if has_bias:
            symbols, matrix = [*symbols, "<s>"], F.pad(matrix, (0, 0, 0, 1))
        order = _order(config, symbols, rows)
        if has_bias:
            symbols, matrix = [symbols[number] for number in order], matrix[order]
        elif order[: len(FIRST)] != [*range(len(FIRST))]:
            raise AggdecError(
                f"a tokenizer that begins with {', '.join(symbols[:4])} is not supported"
            )
        weights.setdefault("encoder.embed_tokens.weight", matrix)
        dictionaries.append(symbols)
    weights["decoder.embed_tokens.weight"] = weights[
        "decoder.output_projection.weight"
    ] = matrix
    start = order.index(config["decoder_start_token_id"])
    # fairseq begins with EOS, which is no other input of the decoder
    if start != EOS or not is_joined:
        options |= {
            "share_all_embeddings": False,
            "share_decoder_input_output_embed": False,
        }
        weights["decoder.embed_tokens.weight"] = matrix.clone()
        weights["decoder.embed_tokens.weight"][EOS] = matrix[start]
    bias = weights.pop("final_logits_bias", torch.zeros(1, rows))
    is_wrong = bias.shape != (1, rows) if has_bias else bool(bias.any())
    if is_wrong:
        raise AggdecError(
            f"final_logits_bias: is not 1 x {rows}, or not zero in a {config['model_type']}"
        )
    if has_bias:
        weights["decoder.output_projection.bias"] = F.pad(
            bias[0], (0, 1), value=_NEVER
        )[order]
        for name in (
            "encoder.embed_positions.weight",
            "decoder.embed_positions.weight",
        ):
            table = weights.get(
                name, _sinusoids(config["max_position_embeddings"], config["d_model"])
            )
            # fairseq's positions begin behind the number of its <pad>
            weights[name] = F.pad(table, (0, 0, 2, 0))
    return Converted(
        options, weights, dictionaries[0], None if is_joined else dictionaries[1]
    )


def _sinusoids(positions: int, dim: int) -> Tensor:
    """The table of positions, positions x dim: all sines, then all cosines."""
    angles = torch.arange(positions, dtype=torch.double)[:, None] / 10000 ** (
        torch.arange(0, dim, 2).double() / dim
    )
    return torch.cat([angles.sin(), angles.cos()[:, : dim // 2]], dim=1).float()


FAMILIES: dict[str, Callable[..., Converted]] = {
    "bart": partial(_converted, arch="bart_large", pre_norm=False),
    "mbart": partial(_converted, arch="mbart_large", pre_norm=True),
    "m2m_100": partial(_converted, arch="transformer", pre_norm=True),
    "marian": partial(_converted, arch="hub_transformer", pre_norm=False),
    "pegasus": partial(_converted, arch="hub_transformer", pre_norm=True),
}
"""by config.json's `model_type`; M2M-100 and NLLB are one"""
