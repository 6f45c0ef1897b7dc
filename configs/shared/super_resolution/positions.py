"""Learned position embeddings for images, started as sines of each pixel's row and column.

A plain Transformer knows a token's position as one number. In an image in raster order this number does not show which
tokens stand above one another, nor which pixel of the small image a pixel of the large one comes from. Sines of row and
column show both, as in the Image Transformer, from which papers/004 §7.2 starts. Here they only start the learned
embeddings, so that the model stays a plain Transformer.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

from fairseq_aggdec.errors import AggdecError

from .tokens import ImageSizes


def start_from_coordinates(model: Any, sizes: ImageSizes) -> None:
    """Set the position embeddings of both sides.

    Position i of the encoder reads token i of the small image; position i of the decoder predicts token i of the large
    one. The coordinates of both are those of the large image.

    Raises `AggdecError` where the position embeddings are not learned, or their width is no multiple of 4.
    """
    sides = {
        "encoder": (model.encoder, sizes.input_size),
        "decoder": (model.decoder, sizes.output_size),
    }
    for side, (stack, size) in sides.items():
        table = stack.embed_positions
        if not isinstance(table, LearnedPositionalEmbedding):
            raise AggdecError(
                f"--coordinate-positions needs learned positions: add --{side}-learned-pos"
            )
        if table.embedding_dim % 4:
            raise AggdecError(
                f"--coordinate-positions: --{side}-embed-dim {table.embedding_dim} is no multiple of 4"
            )
        first = table.padding_idx + 1
        waves = coordinate_waves(
            size, sizes.output_size / size, sizes.output_size, table.embedding_dim
        )
        # fairseq's usual size
        waves = (
            waves.repeat_interleave(sizes.channels, dim=0) * table.embedding_dim**-0.5
        )
        # half of the random values stays, to distinguish the channels
        with torch.no_grad():
            rows = table.weight[first : first + len(waves)]
            rows.mul_(0.5).add_(waves)


def coordinate_waves(size: int, pixel: float, plane: int, dim: int) -> Tensor:
    """Sines and cosines of each pixel's row, then of its column: size² x D, in raster order, of mean square 1/2.

    The image has `size` pixels on a side, each the size of `pixel` pixels of the large image, which has `plane` pixels
    on a side; wavelengths go from 4 to 4 times `plane`.
    """
    count = dim // 4
    lengths = torch.logspace(math.log10(4), math.log10(4 * plane), count)
    centres = (torch.arange(size) + 0.5) * pixel
    angles = 2 * math.pi * centres[:, None] / lengths  # size x D/4
    waves = torch.cat([angles.sin(), angles.cos()], dim=1)  # size x D/2
    by_row = waves[:, None].expand(size, size, -1)
    by_column = waves[None].expand(size, size, -1)
    return torch.cat([by_row, by_column], dim=-1).flatten(0, 1)
