"""Rows of different widths, without what pads them to a matrix.

A matrix of tokens is as wide as its widest row. Where a few rows have long drafts and the others none, most of it is
padding, and where arithmetic binds padding costs as much as tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """Which entries of a B x W matrix count: the first few of each row, at least one."""

    width: int
    """W"""
    rows: Tensor
    """N, the row of each entry, row by row"""
    columns: Tensor
    """N, its column"""
    entries: Tensor | None
    """N, its place in the matrix, row by row; None where all B W entries count"""
    nearest: Tensor | None
    """B W, for each place of the matrix the entry (by number, of N) that stands there; the row's last one behind it"""

    @staticmethod
    def of(widths: Sequence[int], device: torch.device) -> "Ragged":
        """Rows of so many entries."""
        width = max(widths)
        if min(widths) == width:
            return Ragged.full(len(widths), width, device)
        rows: list[int] = []
        columns: list[int] = []
        nearest: list[int] = []
        for row, wide in enumerate(widths):
            first = len(rows)
            rows += [row] * wide
            columns += range(wide)
            nearest += range(first, first + wide)
            nearest += [first + wide - 1] * (width - wide)
        where = torch.tensor([rows, columns], device=device)
        return Ragged(width, where[0], where[1], where[0] * width + where[1], torch.tensor(nearest, device=device))

    @staticmethod
    @lru_cache(maxsize=256)
    def full(rows: int, width: int, device: torch.device) -> "Ragged":
        """Every entry counts."""
        columns = torch.arange(width, device=device)
        numbers = torch.arange(rows, device=device)
        return Ragged(
            width, numbers.repeat_interleave(width, output_size=rows * width), columns.repeat(rows), None, None
        )

    @property
    def size(self) -> int:
        """N"""
        return self.rows.size(0)

    def pack(self, x: Tensor) -> Tensor:
        """B x W x ... -> N x ..."""
        return x.flatten(0, 1) if self.entries is None else x.flatten(0, 1).index_select(0, self.entries)

    def spread(self, x: Tensor) -> Tensor:
        """N x ... -> B x W x ..., each row's last entry repeated behind it."""
        return (x if self.nearest is None else x.index_select(0, self.nearest)).unflatten(0, (-1, self.width))
