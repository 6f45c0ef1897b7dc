"""Blocks of different widths, read without what pads them.

A matrix of tokens is as wide as its widest row. Where a few rows have long drafts and the others none, most of it is
padding, and where arithmetic binds padding costs as much as tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Which entries of a B x W matrix are tokens: the first few of each row, at least one."""

    width: int
    """W"""
    rows: Tensor
    """N, the row of each token, row by row"""
    columns: Tensor
    """N, its column"""
    numbers: Tensor
    """N, its place in the matrix, row by row"""
    nearest: Tensor
    """B W, for each place of the matrix the token (by number, of N) that stands there; the row's last behind it"""

    @staticmethod
    def of(widths: Sequence[int], device: torch.device) -> "Packing":
        """The packing of rows of so many tokens."""
        width = max(widths)
        rows: list[int] = []
        columns: list[int] = []
        nearest: list[int] = []
        for row, wide in enumerate(widths):
            first = len(rows)
            rows += [row] * wide
            columns += range(wide)
            nearest += range(first, first + wide)
            nearest += [first + wide - 1] * (width - wide)
        packed = torch.tensor([rows, columns], device=device)
        return Packing(width, packed[0], packed[1], packed[0] * width + packed[1], torch.tensor(nearest, device=device))

    def pack(self, x: Tensor) -> Tensor:
        """B x W x ... -> N x ..."""
        return x.flatten(0, 1).index_select(0, self.numbers)

    def spread(self, x: Tensor) -> Tensor:
        """N x ... -> B x W x ..., each row's last token repeated behind it."""
        return x.index_select(0, self.nearest).unflatten(0, (-1, self.width))
