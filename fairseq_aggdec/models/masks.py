"""Attention masks."""

import math

import torch
from torch import Tensor


def additive_mask(hidden: Tensor, like: Tensor) -> Tensor:
    """The mask to add to attention scores: minus infinity where `hidden` is true, else 0; type as `like`."""
    return torch.zeros(hidden.shape, dtype=like.dtype, device=hidden.device).masked_fill_(hidden, -math.inf)
