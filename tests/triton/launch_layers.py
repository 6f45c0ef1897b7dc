"""The kernels of `layers.py` in the sizes of base, of an uneven model, and of big and BART-large."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase

from fairseq_aggdec.engine.cuda.layers import TritonDecoderLayers

SIZES = [(512, 2048, 8, "relu"), (768, 3072, 6, "relu"), (1024, 4096, 16, "gelu")]
"""numbers of a token, inside the feed-forward part, heads, and the activation"""


@cache
def layer(dim: int, inner: int, heads: int, activation: str) -> Any:
    config = TransformerConfig(activation_fn=activation)
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim, side.attention_heads = dim, inner, heads
    return TransformerDecoderLayerBase(config)


def launch(dtype: torch.dtype) -> None:
    for dim, inner, heads, activation in SIZES:
        # two layers: the first one's input is already normalised
        same = layer(dim, inner, heads, activation).to(dtype)
        decoder = TritonDecoderLayers(SimpleNamespace(layers=[same, same], layer_norm=None))
        x = torch.zeros(1, 3, dim, dtype=dtype)
        memory, starts = torch.zeros(2, 1, heads, 64, 2 * dim // heads, dtype=dtype), torch.zeros(1, dtype=torch.long)
        decoder.block(x, memory, starts, memory, torch.zeros(1, 64, dtype=torch.bool))
        if dim == 1024:
            places = torch.zeros(1, 3, 5, dtype=torch.long)
            decoder.block(x, memory, places[..., 0], memory, None, paths=places)
