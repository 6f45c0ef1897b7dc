"""Models that others trained, as Transformers of fairseq: same weights under fairseq's names, symbols in its order.

fairseq numbers <s> 0, <pad> 1, </s> 2 and <unk> 3, and begins an output with </s>, which therefore takes the row of
the embedding that their start symbol has. What their decoders never choose gets a bias that no search chooses.
"""

import re
import struct
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_REGISTRY,
    register_model,
    register_model_architecture,
)
from fairseq.models.transformer import base_architecture
from fairseq.modules import LayerNorm
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.models.hub_transformer import HubTransformerModel

PAD = 1
EOS = 2
NEVER = -1e4
"""the bias of a symbol that is never chosen"""

Weights = dict[str, Tensor]


@register_model("last_norm_transformer")
class LastNormTransformer(HubTransformerModel):
    """As `torch.nn.Transformer`: after layers that end with a norm there is one more."""

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Any:
        model = super().build_model(args, task)
        for side in (model.encoder, model.decoder):
            side.layer_norm = LayerNorm(args.encoder_embed_dim)
        return model


register_model_architecture("last_norm_transformer", "last_norm_transformer")(
    base_architecture
)


@dataclass
class Outside:
    """A model of others, ready for fairseq."""

    source: Dictionary
    target: Dictionary
    options: Namespace
    """what its checkpoint says of the architecture"""
    model: Any

    @classmethod
    def of(
        cls,
        source: Dictionary,
        target: Dictionary,
        weights: Weights,
        arch: str = "hub_transformer",
        **alike: Any,
    ) -> "Outside":
        """Build a Transformer with 8 heads and fill it with all of these weights.

        `alike`: fairseq's options of its encoder and of its decoder.
        """
        alike |= {"attention_heads": 8, "learned_pos": True}
        sides = {
            f"{side}_{name}": value
            for side in ("encoder", "decoder")
            for name, value in alike.items()
        }
        longest = len(weights["encoder.embed_positions.weight"]) - 2
        args = Namespace(
            arch=arch,
            dropout=0.0,
            max_source_positions=longest,
            max_target_positions=longest,
            **sides,
        )
        ARCH_CONFIG_REGISTRY[arch](args)
        task = Namespace(source_dictionary=source, target_dictionary=target)
        model = ARCH_MODEL_REGISTRY[arch].build_model(args, task)
        # of fairseq's formats: with an older one it drops the last norm
        newest = torch.Tensor([3])
        model.load_state_dict(
            {**weights, "encoder.version": newest, "decoder.version": newest}
        )
        return cls(source, target, args, model.eval())

    def save(self, path: Path) -> None:
        """Write a checkpoint that fairseq-generate reads."""
        cfg = {"model": self.options, "task": {"_name": "translation"}}
        torch.save(
            without_training(
                {"args": None, "cfg": cfg, "model": self.model.state_dict()}
            ),
            path,
        )


def dictionary(symbols: Iterable[str]) -> Dictionary:
    """A dictionary of fairseq's four symbols and these."""
    result = Dictionary()
    for symbol in symbols:
        result.add_symbol(symbol)
    return result


def searched(
    generator: Any,
    model: Any,
    sources: Sequence[list[int]],
    size: int = 1,
    drafts: Sequence[list[int]] = (),
) -> list[list[dict[str, Any]]]:
    """The hypotheses that a generator finds for sources of token numbers, `size` of them in a batch.

    `drafts`: for each source the text to copy from, for `iad`; fairseq's own generator leaves them unread.
    """
    hypotheses = []
    for first in range(0, len(sources), size):
        rows = sources[first : first + size]
        # B x S
        tokens = collate_tokens([torch.tensor(row) for row in rows], PAD, left_pad=True)
        net_input = {
            "src_tokens": tokens,
            "src_lengths": torch.tensor([len(row) for row in rows]),
        }
        sample = {"net_input": net_input, "drafts": drafts[first : first + size]}
        hypotheses += generator.generate([model], sample)
    return hypotheses


def fairseqs(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> Weights:
    """Weights under fairseq's names, projections that are joined taken apart.

    `names`: regular expressions of parts of their names, replaced in this order. A joined projection is called by its
    letters, such as `kv_proj`, and has as many parts of equal size.
    """
    renamed = {}
    for name, weight in weights.items():
        for theirs, ours in names.items():
            name = re.sub(theirs, ours, name)
        letters = re.search(r"\.([qkv]+)_proj\.", name)
        if letters is None:
            renamed[name] = weight
            continue
        for letter, part in zip(letters[1], weight.chunk(len(letters[1])), strict=True):
            renamed[name.replace(letters[0], f".{letter}_proj.")] = part
    return renamed


def in_fairseqs_order(
    weights: Weights,
    source_rows: Sequence[int],
    target_rows: Sequence[int],
    start: int,
    never: Sequence[int],
) -> None:
    """Order the rows of embeddings and logits as fairseq's symbols.

    Args:
        weights: under fairseq's names; they are changed.
        source_rows, target_rows: for each of fairseq's symbols the row of their symbol.
        start: the row of the symbol that their outputs begin with.
        never: symbols of fairseq that are never chosen.
    """
    weights["encoder.embed_tokens.weight"] = weights["encoder.embed_tokens.weight"][
        source_rows
    ]
    read = weights["decoder.embed_tokens.weight"]
    weights["decoder.embed_tokens.weight"] = read[target_rows]
    weights["decoder.embed_tokens.weight"][EOS] = read[start]
    for part in ("weight", "bias"):
        name = f"decoder.output_projection.{part}"
        weights[name] = weights[name][target_rows]
    weights["decoder.output_projection.bias"][never] = NEVER


def with_positions(weights: Weights, tables: Sequence[Tensor]) -> None:
    """Give encoder and decoder their table of positions (N x D); fairseq's have two rows more before them."""
    for side, table in zip(("encoder", "decoder"), tables, strict=True):
        weights[f"{side}.embed_positions.weight"] = torch.cat(
            [torch.zeros(2, table.size(1)), table]
        )


TRANSLITERATOR = {
    r"/layer_(\d+)": r".layers.\1",
    "self_attention/linear_0": "self_attn.qkv_proj",
    "self_attention/linear_1": "self_attn.out_proj",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_1": "encoder_attn.kv_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
    "ffn/layer_norm": "final_layer_norm",
    "embeddings": "embed_tokens",
    "decoder/projection": "decoder/output_projection",
    "gamma": "weight",
    "beta": "bias",
    "/": ".",
}


def transliterator(folder: Path) -> Outside:
    """CTranslate2's aren-transliteration: Arabic names in Latin letters, 6+6 layers of 32.

    Sources have no end symbol. The first position is 1, where fairseq's sinusoids begin with 2: a table has them.
    """
    symbols = [
        (folder / f"{side}_vocabulary.txt").read_text("utf-8").split("\n")[:-1]
        for side in ("source", "target")
    ]
    weights = fairseqs(ctranslate2_weights(folder / "model.bin"), TRANSLITERATOR)
    # theirs begin with <blank>, <s> and </s>, and end with an unknown symbol that the files do not name
    letters, latin = ([1, 0, 2, len(names), *range(3, len(names))] for names in symbols)
    in_fairseqs_order(weights, letters, latin, start=1, never=[0])
    rates = 10000 ** -(torch.arange(16) / 15)
    angles = torch.arange(1, 1025)[:, None] * rates
    with_positions(weights, [torch.cat([angles.sin(), angles.cos()], dim=1)] * 2)
    source, target = (dictionary(names[3:]) for names in symbols)
    return Outside.of(
        source,
        target,
        weights,
        layers=6,
        embed_dim=32,
        ffn_embed_dim=128,
        normalize_before=True,
    )


def ctranslate2_weights(path: Path) -> Weights:
    """The tensors of a CTranslate2 model without quantization, by their names."""
    with path.open("rb") as file:

        def number(form: str) -> int:
            return int(struct.unpack(form, file.read(struct.calcsize(form)))[0])

        def text() -> str:
            return file.read(number("H"))[:-1].decode()

        # the format's version, the kind of model, the kind's revision
        number("I"), text(), number("I")
        weights = {}
        for _ in range(number("I")):
            name = text()
            shape = [number("I") for _ in range(number("B"))]
            values = file.read(number("B") * number("I"))
            weights[name] = torch.tensor(
                np.frombuffer(values, np.float32).reshape(shape)
            )
        return weights


STRESS_MARKER = {
    "^transformer.": "",
    "self_attn.in_proj_": "self_attn.qkv_proj.",
    "multihead_attn.in_proj_": "encoder_attn.qkv_proj.",
    "multihead_attn": "encoder_attn",
    "(encoder|decoder).norm": r"\1.layer_norm",
    "norm1": "self_attn_layer_norm",
    r"(decoder.*)norm2": r"\1encoder_attn_layer_norm",
    "norm[23]": "final_layer_norm",
    "linear": "fc",
    "output_proj": "decoder.output_projection",
}
PADDING = "<padding>"
"""the symbol that fills their sources; an ordinary one for fairseq, as their attention reads it"""


def stress_marker(theirs: Mapping[str, Tensor], symbols: Sequence[str]) -> Outside:
    """ruaccent-predictor: Russian text with stress marks, 4+4 layers of 256, characters.

    `symbols`: theirs in their order, which begins with padding, start, end and unknown.
    """
    weights = fairseqs(theirs, STRESS_MARKER)
    with_positions(weights, [weights.pop("embed.pos_encoding")[0]] * 2)
    embedding = weights.pop("embed.char_embed.weight")
    weights |= {
        f"{side}.embed_tokens.weight": embedding for side in ("encoder", "decoder")
    }
    rows = [1, 0, *range(2, len(symbols)), 0]
    in_fairseqs_order(weights, rows, rows, start=1, never=[PAD])
    names = dictionary([*(symbol.replace(" ", "▁") for symbol in symbols[4:]), PADDING])
    sizes = {"layers": 4, "embed_dim": 256, "ffn_embed_dim": 1024}
    return Outside.of(names, names, weights, "last_norm_transformer", **sizes)


MOLECULE_EDITOR = {
    "positionwise_feedforward.fc_": "fc",
    "ff_layer_norm": "final_layer_norm",
    "enc_attn_layer_norm": "encoder_attn_layer_norm",
    "self_attention": "self_attn",
    "encoder_attention": "encoder_attn",
    r"\.fc_([qkv])": r".\1_proj",
    r"\.fc_o\.": ".out_proj.",
    "decoder.fc_out": "decoder.output_projection",
    "tok_embedding": "embed_tokens",
}


def molecule_editor(theirs: Mapping[str, Tensor], symbols: Sequence[str]) -> Outside:
    """annalog: molecules similar to a molecule, as SMILES, 3+3 layers of 256.

    `symbols`: theirs in their order, which begins with unknown, padding, start and end.
    """
    weights = fairseqs(theirs, MOLECULE_EDITOR)
    with_positions(
        weights,
        [
            weights.pop(f"{side}.pos_embedding.weight")
            for side in ("encoder", "decoder")
        ],
    )
    rows = [2, 1, 3, 0, *range(4, len(symbols))]
    in_fairseqs_order(weights, rows, rows, start=2, never=[0, PAD])
    names = dictionary(symbols[4:])
    return Outside.of(names, names, weights, layers=3, embed_dim=256, ffn_embed_dim=512)
