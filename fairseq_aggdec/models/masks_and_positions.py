"""Attention masks, and a model's position embeddings by position from 0 on."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor


def position_table(module: Any, length: int, like: Tensor) -> Tensor:
    """fairseq's learned or sinusoidal embeddings of positions from 0 on, N x D, contiguous.

    Sinusoidal embeddings are computed on demand, for N of at least `length`, in the type of `like`.
    """
    first = module.padding_idx + 1
    if not isinstance(module, SinusoidalPositionalEmbedding):
        return module.weight[first:].contiguous()
    if first + length > module.weights.size(0):
        larger = module.get_embedding(2 * (first + length), module.embedding_dim, module.padding_idx)
        module.weights = larger.to(module.weights)
    return module.weights[first:].to(like).contiguous()


def look_up(table: Tensor, positions: Tensor) -> Tensor:
    """Position embeddings, ... -> ... x D; positions beyond the table, past the longest output, get the last one."""
    return F.embedding(positions.clamp(max=table.size(0) - 1), table)


def additive_mask(hidden: Tensor, like: Tensor) -> Tensor:
    """A mask to add to attention scores: minus infinity where `hidden` is true, else 0, in the type of `like`."""
    return torch.zeros(hidden.shape, dtype=like.dtype, device=hidden.device).masked_fill_(hidden, -math.inf)
