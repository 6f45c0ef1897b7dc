"""Families of Hugging Face's models as fairseq's: BART, mBART, M2M-100 and NLLB, OPUS-MT (Marian), Pegasus.

Each field of config.json is checked; the weights get fairseq's names, and the rows of the vocabulary its order. The
vocabularies of Marian and Pegasus are in another one and have no `<s>`, and their positions are sinusoids in an order
of another order, which fairseq reads as learned ones.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.files import Fields, Weights
from fairseq_aggdec.hub.generation import GENERATION
from fairseq_aggdec.hub.settings import T5
from fairseq_aggdec.hub.tokenizers import FIRST, symbol


@dataclass
class Converted:
    """A model in fairseq's form."""

    options: Fields
    """of the model, flat, with its architecture's name as `_name` and `arch`"""
    weights: Weights
    """by fairseq's names"""
    symbols: dict[str, list[str]]
    """of each dictionary by its file name, in fairseq's order, with fairseq's four special symbols"""


@dataclass(frozen=True)
class Family:
    """What sets a family of models apart."""

    arch: str
    """fairseq's name of the architecture"""
    pre_norm: bool
    """layer norms before attention and feed-forward layers, and one after the last layer"""
    language: str = "(?!)"
    """regular expression of its languages' tokens; their names have no `__` or `>>` around them"""
    names_source: bool = False
    """whether a source names its language"""
    starts_with_eos: bool = False
    """whether `decoder_start_token_id` is EOS by default, in transformers"""
    forces_eos: bool = True
    """whether `forced_eos_token_id` is EOS by default, in transformers"""
    scales_embedding: bool = False
    """transformers' default of `scale_embedding`"""

    @property
    def is_bart(self) -> bool:
        """Whether embeddings have a norm, and positions are learned."""
        return "bart" in self.arch

    @property
    def has_bias(self) -> bool:
        """Whether outputs have a bias, the vocabulary another order than fairseq's, and positions are sinusoids."""
        return self.arch == "hub_transformer"


FAMILIES = {
    "bart": Family("bart_large", pre_norm=False, starts_with_eos=True),
    "mbart": Family(
        "mbart_large", pre_norm=True, language="[a-z]{2}_[A-Z]{2}", names_source=True
    ),
    "m2m_100": Family(
        "transformer",
        pre_norm=True,
        language="__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}",
        names_source=True,
        starts_with_eos=True,
        forces_eos=False,
        scales_embedding=True,
    ),
    "marian": Family("hub_transformer", pre_norm=False, language=">>.+<<"),
    "pegasus": Family("hub_transformer", pre_norm=True),
    **dict.fromkeys(T5, Family("hub_t5", pre_norm=True, forces_eos=False)),
}
"""by config.json's `model_type`; M2M-100 and NLLB are one"""

EOS = FIRST.index("</s>")
NEVER = -1e4
"""bias of a symbol whose probability is 0; half precision has the value, too"""

WITHOUT_EFFECT = frozenset(
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
"""fairseq's names of sizes in config.json, both after that of the side"""
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


def _check(config: Fields, family: Family, is_joined: bool) -> None:
    """Raise `AggdecError` for a field of config.json that is missing, not known, or not supported."""
    supported = _ALWAYS | {
        "add_final_layer_norm": (family.pre_norm,),
        "normalize_before": (family.pre_norm,),
        "normalize_embedding": (family.is_bart,),
        "share_encoder_decoder_embeddings": (is_joined,),
        "static_position_embeddings": (not family.is_bart,),
    }
    known = {*supported, *_SIZES, *_NEEDED, *GENERATION, *WITHOUT_EFFECT}
    for field, value in config.items():
        if field in supported and value not in supported[field]:
            values = " or ".join(map(repr, supported[field]))
            raise AggdecError(
                f"config.json: {field}: {value!r} is not supported for {config['model_type']}, only {values}"
            )
        if field not in known and not field.startswith("_"):
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


def _options(config: Fields, family: Family, is_joined: bool) -> Fields:
    """fairseq's options of a model; `is_joined`: source and target have one dictionary and one matrix."""
    return {
        "_name": family.arch,
        "arch": family.arch,
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
            "scale_embedding", family.scales_embedding
        ),
        "share_all_embeddings": True,
        "share_decoder_input_output_embed": True,
        "share_source_output_embed": is_joined,  # of `hub_transformer`
        **{f"{side}_normalize_before": family.pre_norm for side in _SIDES},
        **{f"{side}_learned_pos": family.arch != "transformer" for side in _SIDES},
        "layernorm_embedding": family.is_bart,
    }


def fitted(tokens: list[str], rows: int) -> list[str]:
    """fairseq's symbol of each row of the embeddings. Up to 127 rows at the end may have no token, and `<mask>` no row.

    Raises `AggdecError` where there are more or fewer.
    """
    symbols = [symbol(token, index) for index, token in enumerate(tokens)]
    if len(symbols) == rows + 1 and symbols[-1] == "<mask>":  # bart-large-cnn
        symbols.pop()
    if not len(symbols) <= rows < len(symbols) + 128:
        raise AggdecError(
            f"a vocabulary that does not fit: the tokenizer has {len(symbols)} tokens, config.json {rows} "
            "(vocab_size); download the tokenizer of this model"
        )
    return symbols + [symbol("", index) for index in range(len(symbols), rows)]


def matrix_of(weights: Weights, names: list[str], rows: int) -> Tensor:
    """Take a matrix of embeddings, and its copies, out of a model's weights.

    Raises `AggdecError` where there is none, its copies differ, or it has more or fewer rows.
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


def _embedding_permutation(config: Fields, symbols: list[str], rows: int) -> list[int]:
    """The row of each of fairseq's symbols in a side's matrix, which has the order of `symbols`."""
    if missing := [name for name in FIRST if name not in symbols]:
        raise AggdecError(
            f"the tokenizer has no {missing[0]}, which a model of {config['model_type']} needs"
        )
    first = [symbols.index(name) for name in FIRST]
    for row, field in zip(first[1:3], ("pad_token_id", "eos_token_id"), strict=True):
        if config[field] != row:
            raise AggdecError(
                f"config.json: {field}: is {config[field]}, and {row} in the tokenizer: not supported"
            )
    return first + [row for row in range(rows) if row not in first]


class _Side(NamedTuple):
    """The vocabulary of source or target, in fairseq's order."""

    symbols: list[str]
    matrix: Tensor
    """embeddings, symbols x dim"""
    order: list[int]
    """of each symbol the row in the original matrix"""


def _side(
    family: Family,
    config: Fields,
    tokens: list[str],
    weights: Weights,
    names: list[str],
    rows: int,
) -> _Side:
    """Take the embeddings of these names, of `rows` tokens, out of a model's weights."""
    symbols = fitted(tokens, rows)
    matrix = matrix_of(weights, names, rows)
    if family.has_bias:  # these have no <s>
        symbols.append("<s>")
        matrix = F.pad(matrix, (0, 0, 0, 1))
    order = _embedding_permutation(config, symbols, rows)
    if family.has_bias:
        return _Side([symbols[row] for row in order], matrix[order], order)
    if order[: len(FIRST)] != [*range(len(FIRST))]:
        raise AggdecError(
            f"a tokenizer that begins with {', '.join(symbols[:4])} is not supported"
        )
    return _Side(symbols, matrix, order)


def convert(
    family: Family,
    config: Fields,
    start: int,
    weights: Weights,
    tokens: list[str],
    target_tokens: list[str],
) -> Converted:
    """A model in fairseq's form.

    Args:
        family: of the model.
        config: the content of config.json.
        start: the first input of the decoder, by the tokenizer's index.
        weights: as by `read_weights`.
        tokens, target_tokens: of source and output.

    Raises:
        AggdecError: a field or a weight is missing, not known, or not supported.
    """
    weights = dict(weights)
    is_joined = target_tokens == tokens and (
        not family.has_bias or config.get("share_encoder_decoder_embeddings", True)
    )
    _check(config, family, is_joined)
    options = _options(config, family, is_joined)
    # the vocabularies, with their embeddings
    rows: int = config["vocab_size"]
    inputs = ["shared", "encoder.embed_tokens"]
    outputs = ["decoder.embed_tokens", "lm_head"]
    if is_joined:
        source = _side(family, config, tokens, weights, inputs + outputs, rows)
        target = source
    else:
        source = _side(family, config, tokens, weights, inputs[1:], rows)
        rows = config.get("decoder_vocab_size", rows)
        target = _side(family, config, target_tokens, weights, outputs, rows)
    weights["encoder.embed_tokens.weight"] = source.matrix
    weights["decoder.embed_tokens.weight"] = target.matrix
    weights["decoder.output_projection.weight"] = target.matrix
    # fairseq begins with EOS, which is no other input of the decoder
    first = target.order.index(start)
    if first != EOS or not is_joined:
        options["share_all_embeddings"] = False
        options["share_decoder_input_output_embed"] = False
        embeddings = target.matrix.clone()
        embeddings[EOS] = target.matrix[first]
        weights["decoder.embed_tokens.weight"] = embeddings
    # else fairseq drops norms
    weights |= {f"{side}.version": torch.tensor([3.0]) for side in _SIDES}
    # the bias of outputs
    bias = weights.pop("final_logits_bias", torch.zeros(1, rows))
    is_wrong = bias.shape != (1, rows) if family.has_bias else bool(bias.any())
    if is_wrong:
        raise AggdecError(
            f"final_logits_bias: is not 1 x {rows}, or not zero in a {config['model_type']}"
        )
    if family.has_bias:
        bias = F.pad(bias[0], (0, 1), value=NEVER)
        weights["decoder.output_projection.bias"] = bias[target.order]
        # the positions of both sides, which begin after the index of <pad> in fairseq
        sizes = config["max_position_embeddings"], config["d_model"]
        for side in _SIDES:
            name = f"{side}.embed_positions.weight"
            table = weights.get(name, _sinusoids(*sizes))
            weights[name] = F.pad(table, (0, 0, 2, 0))
    symbols = {"dict.source.txt": source.symbols, "dict.target.txt": target.symbols}
    if is_joined:
        symbols = {"dict.txt": source.symbols}
    return Converted(options, weights, symbols)


def _sinusoids(positions: int, dim: int) -> Tensor:
    """The table of positions, positions x dim: all sines, then all cosines."""
    angles = torch.arange(positions, dtype=torch.double)[:, None] / 10000 ** (
        torch.arange(0, dim, 2).double() / dim
    )
    return torch.cat([angles.sin(), angles.cos()[:, : dim // 2]], dim=1).float()
