"""Preallocated self-attention keys and values with a length per row."""

import torch
from torch import Tensor

_GRANULE = 64  # positions; capacities are multiples, so that few different shapes occur


class KVCache:
    """Keys and values of every decoder layer.

    Rolling a row back costs nothing: the next block is written at the row's new position, and what lies behind it is
    hidden by the attention mask. The memory is kept from batch to batch, and rows that leave do not shrink it. All that
    a head of a row has lies together: so the products of attention need no copies of it.
    """

    def __init__(self, num_layers: int, heads: int, head_dim: int) -> None:
        self.num_layers = num_layers
        self.heads = heads
        self.head_dim = head_dim
        self._memory: Tensor | None = None  # layers x B x H x capacity x 2D/H, keys first
        self._batch_size = 0
        self._first = torch.empty(0)  # B x 1 x H, where a layer's memory has each head's first position

    def start(self, batch_size: int, like: Tensor) -> None:
        """Prepare for a new batch with the device and dtype of `like`.

        Args:
            batch_size: B.
            like: any tensor.
        """
        memory = self._memory
        if memory is None or memory.dtype != like.dtype or memory.device != like.device or memory.size(1) < batch_size:
            memory = self._memory = self._allocate(batch_size, _GRANULE, like)
        self._batch_size = batch_size
        self._number(memory)

    def reserve(self, length: int) -> None:
        """Make room for `length` positions."""
        assert self._memory is not None, "start() comes first"
        if length > self._memory.size(3):
            capacity = max(-(-length // _GRANULE) * _GRANULE, 2 * self._memory.size(3))
            wider = self._allocate(self._memory.size(1), capacity, self._memory)
            wider[:, :, :, : self._memory.size(3)] = self._memory
            self._memory = wider
            self._number(wider)

    def places(self, positions: Tensor, rows: Tensor | None = None) -> Tensor:
        """Where a block is written, in every layer alike; what is reserved later moves it.

        Args:
            positions: B x W, where the block's tokens stand; or N, of any tokens.
            rows: N, whose these are; not for B x W.

        Returns:
            B x W x H or N x H numbers, for `write`.
        """
        if rows is None:
            return self._first + positions[..., None]
        return self._first.squeeze(1)[rows] + positions[:, None]

    def write(self, layer: int, keys_values: Tensor, places: Tensor | None, last_start: int, width: int) -> Tensor:
        """Store a block and return what the layer can attend to.

        Args:
            layer: its number.
            keys_values: B x W x 2D or N x 2D, head by head, each head's keys first.
            places: from `places`; None for one row, whose first token stands at `last_start`.
            last_start: the largest first position.
            width: L, at most what was reserved.

        Returns:
            B x H x L x 2D/H, keys first; entries behind a row's own block are stale.
        """
        assert self._memory is not None, "start() comes first"
        memory = self._memory[layer]
        by_head = keys_values.unflatten(-1, (self.heads, 2 * self.head_dim))
        if places is None:
            memory[:1, :, last_start : last_start + keys_values.size(1)] = by_head.transpose(1, 2)
        else:
            memory.view(-1, 2 * self.head_dim).index_put_((places,), by_head)
        return memory[: self._batch_size, :, :width]

    def keep(self, rows: Tensor, moved: Tensor) -> None:
        """Drop all rows but these, see `keep_rows`."""
        assert self._memory is not None, "start() comes first"
        keep_rows(self._memory, rows, moved, dim=1)
        self._batch_size = rows.size(0)
        self._first = self._first[: self._batch_size]

    def _number(self, memory: Tensor) -> None:
        heads = torch.arange(self._batch_size * self.heads, device=memory.device)
        self._first = heads.view(-1, 1, self.heads) * memory.size(3)

    def _allocate(self, batch_size: int, capacity: int, like: Tensor) -> Tensor:
        # zeros, not empty: stale entries are masked, but a NaN would survive the masked softmax times values
        return like.new_zeros(self.num_layers, batch_size, self.heads, capacity, 2 * self.head_dim)


def moved_rows(rows: Tensor) -> Tensor:
    """The places whose row was another one's before. On a GPU the host waits for it."""
    return (rows != torch.arange(rows.size(0), device=rows.device)).nonzero().squeeze(1)


def keep_rows(x: Tensor, rows: Tensor, moved: Tensor, dim: int = 0) -> Tensor:
    """`x[rows]`, in place: only rows that change their place are copied.

    Args:
        x: overwritten.
        rows: what stands at each place from 0.
        moved: their `moved_rows`.
        dim: which dimension has the rows.

    Returns:
        the beginning of `x`.
    """
    if moved.size(0) > 0:
        x.index_copy_(dim, moved, x.index_select(dim, rows[moved]))
    return x.narrow(dim, 0, rows.size(0))
