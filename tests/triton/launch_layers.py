"""The kernels of `layers.py` in the sizes of base, of an uneven model, and of big and BART-large."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase

from fairseq_aggdec.engine.cuda import kernels
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
        read(decoder, heads, torch.zeros(1, 3, dim, dtype=dtype))
        compiled = how_many()
        read(decoder, heads, torch.zeros(16, 16, dim, dtype=dtype), capacity=65, source=17, offset=1)
        assert how_many() == compiled  # other sizes and addresses need no other machine code
        if dim == 1024:
            read(decoder, heads, torch.zeros(1, 3, dim, dtype=dtype), torch.zeros(1, 3, 5, dtype=torch.long))


def read(
    decoder: Any, heads: int, x: torch.Tensor, paths: Any = None, capacity: int = 64, source: int = 64, offset: int = 0
) -> None:
    """Read a block whose numbers are a part of a buffer, from `offset` on."""
    rows, _, dim = x.shape
    memory, cross = (x.new_zeros(2, rows, heads, length, 2 * dim // heads) for length in (capacity, source))
    starts = torch.zeros(rows + offset, dtype=torch.long)[offset:] if paths is None else paths[..., 0]
    decoder.block(x, memory, starts, cross, torch.zeros(rows, source, dtype=torch.bool), paths=paths)


def how_many() -> int:
    """The number of kernels that are compiled."""
    found = (kernels.product, kernels.projections, kernels.attention, kernels.norm)
    return sum(len(caches[0]) for kernel in found for caches in kernel.device_caches.values())
