"""Small random models with proposal heads, untrained: they propose noise that depends on everything they read."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, FairseqEncoderDecoderModel

from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerModel
from tests.support.random_models import SHAPES, random_network

HEAD_KINDS: dict[str, dict[str, Any]] = {
    "identity": {"identity_head": True},
    "learned": {},
    "identity, own hidden": {"identity_head": True, "own_hidden": True},
    "learned, own hidden": {"own_hidden": True},
}


def random_blockwise(
    shape: str,
    kind: str,
    seed: int,
    src_dict: Dictionary,
    tgt_dict: Dictionary,
    heads: int,
    eos_share: float = 0.0,
    **changes: Any,
) -> BlockwiseTransformerModel:
    """A model of a named shape with heads of a named kind, with architecture options changed as given."""
    options = {**SHAPES[shape], **HEAD_KINDS[kind], **changes}
    return random_network(
        "blockwise_transformer", seed, src_dict, tgt_dict, eos_share,
        **{"block_heads": heads, "head_ffn_embed_dim": 24, **options},
    )  # fmt: skip


def save_base(model: FairseqEncoderDecoderModel, path: Path, **options: Any) -> Path:
    """A checkpoint as fairseq-train leaves it, with the options of `random_model`."""
    args = Namespace(
        arch="transformer", encoder_embed_dim=16, encoder_ffn_embed_dim=32, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=16, decoder_ffn_embed_dim=32, decoder_layers=2, decoder_attention_heads=2,
        max_source_positions=64, max_target_positions=64, dropout=0.0,
    )  # fmt: skip
    vars(args).update(options)
    torch.save({"model": model.state_dict(), "cfg": {"model": args}, "args": None}, path)
    return path


def on_base(
    path: Path | str | None, src_dict: Dictionary, tgt_dict: Dictionary, **options: Any
) -> BlockwiseTransformerModel:
    """What --arch blockwise_transformer --base-checkpoint PATH builds."""
    args = Namespace(arch="blockwise_transformer", base_checkpoint=path and str(path), **{"block_heads": 4, **options})
    ARCH_CONFIG_REGISTRY["blockwise_transformer"](args)
    task = SimpleNamespace(source_dictionary=src_dict, target_dictionary=tgt_dict)
    return BlockwiseTransformerModel.build_model(args, task)
