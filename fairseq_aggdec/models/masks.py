"""Attention masks."""

import math

import torch
from torch import Tensor


def additive_mask(hidden: Tensor, like: Tensor) -> Tensor:
    """What is added to attention scores: minus infinity where `hidden` is true, else zero; of the type of `like`."""
    return torch.zeros(hidden.shape, dtype=like.dtype, device=hidden.device).masked_fill_(hidden, -math.inf)
