"""The training blocks of a sentence for a drafter (L_NAR of papers/000 §3.2.1).

A target sentence is y1..yT and EOS. The block at prefix length p, 0 <= p <= T, is the k positions p+1..p+k: given the
source and y1..yp, the drafter predicts their tokens at once. Positions after EOS have no target.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Blocks(NamedTuple):
    """R blocks of k positions for each of B sentences."""

    prefix_lengths: Tensor
    """B x R: p of each block, the number of target tokens before it"""
    targets: Tensor
    """B x R x k: the tokens of positions p+1..p+k, EOS included; padding after EOS"""
    valid: Tensor
    """B x R x k: whether the position has a target"""


def blocks_at(target: Tensor, prefix_lengths: Tensor, block_size: int, pad: int) -> Blocks:
    """Cut blocks out of targets, B x L, padded on the right, at prefix lengths from 0 to the sentence's T, B x R."""
    steps = torch.arange(block_size, device=target.device)
    index = prefix_lengths[..., None] + steps  # B x R x k; target[:, p + i] is y of position p+1+i
    inside = index < target.size(1)
    index = index.clamp(max=target.size(1) - 1)
    targets = target.gather(1, index.flatten(1)).view_as(index).masked_fill(~inside, pad)
    return Blocks(prefix_lengths, targets, targets.ne(pad))


def spread_prefix_lengths(offsets: Tensor, lengths: Tensor, blocks: int) -> Tensor:
    """Prefix lengths from 0 to T, B x R, as far apart as possible within a sentence (systematic sampling).

    A sentence's offset in [0, 1) decides all R = `blocks` of them. Each is uniform on 0..T where the offset is uniform;
    two are equal only where R exceeds T+1. Lengths, B, are T+1: tokens with EOS, at least 1.
    """
    steps = torch.arange(blocks, device=offsets.device, dtype=offsets.dtype) / blocks
    fractions = (offsets[:, None] + steps) % 1.0
    # rounding may turn a fraction just below 1 into T+1
    return torch.minimum((fractions * lengths[:, None]).long(), lengths[:, None].long() - 1)


def random_prefix_lengths(lengths: Tensor, blocks: int) -> Tensor:
    """Random prefix lengths for training, B x R; see `spread_prefix_lengths`."""
    return spread_prefix_lengths(torch.rand(lengths.size(0), device=lengths.device), lengths, blocks)


def fixed_prefix_lengths(ids: Tensor, lengths: Tensor, blocks: int) -> Tensor:
    """Prefix lengths for validation, B x R, which depend on the sentence's number in the data set (B) alone."""
    golden = 0.6180339887498949  # multiples of it modulo 1 cover the unit interval evenly
    return spread_prefix_lengths((ids.double() * golden) % 1.0, lengths, blocks)
