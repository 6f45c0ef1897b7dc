"""Preallocated self-attention keys and values with a length per row."""

import torch
from torch import Tensor

_GRANULE = 64  # positions; capacities are multiples, so that few different shapes occur


class KVCache:
    """Keys and values of every decoder layer.

    Rolling a row back costs nothing: the next block is written at the row's new position, and what lies behind it is
    hidden by the attention mask. The memory is kept from batch to batch, and rows that leave do not shrink it.
    """

    def __init__(self, num_layers: int, embed_dim: int) -> None:
        self.num_layers = num_layers
        self.embed_dim = embed_dim
        self._memory: Tensor | None = None  # layers x B x capacity x 2D, keys first
        self._rows: Tensor = torch.empty(0)

    def start(self, batch_size: int, like: Tensor) -> None:
        """Prepare for a new batch with the device and dtype of `like`."""
        memory = self._memory
        if memory is None or memory.dtype != like.dtype or memory.device != like.device or memory.size(1) < batch_size:
            self._memory = self._allocate(batch_size, _GRANULE, like)
        self._rows = torch.arange(batch_size, device=like.device)[:, None]

    def reserve(self, length: int) -> None:
        """Make room for `length` positions."""
        assert self._memory is not None, "start() comes first"
        if length > self._memory.size(2):
            capacity = max(-(-length // _GRANULE) * _GRANULE, 2 * self._memory.size(2))
            wider = self._allocate(self._memory.size(1), capacity, self._memory)
            wider[:, :, : self._memory.size(2)] = self._memory
            self._memory = wider

    def write(
        self, layer: int, keys_values: Tensor, positions: Tensor | None, longest: int, width: int | None = None
    ) -> Tensor:
        """Store a block and return what the layer can attend to.

        Args:
            layer: its number.
            keys_values: B x W x 2D, keys first.
            positions: B x W, where the block's tokens stand; None for one row, whose first stands at `longest`.
            longest: the largest first position.
            width: L, at most what was reserved; None for `longest` + W.

        Returns:
            B x L x 2D; entries behind a row's own block are stale.
        """
        assert self._memory is not None, "start() comes first"
        memory = self._memory[layer, : self._rows.size(0)]
        end = longest + keys_values.size(1)
        if positions is None:
            memory[:, longest:end] = keys_values
        else:
            memory[self._rows, positions] = keys_values
        return memory[:, : end if width is None else width]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        assert self._memory is not None, "start() comes first"
        keep_rows(self._memory, rows, dim=1)
        self._rows = self._rows[: rows.size(0)]

    def _allocate(self, batch_size: int, capacity: int, like: Tensor) -> Tensor:
        # zeros, not empty: stale entries are masked, but a NaN would survive the masked softmax times values
        return like.new_zeros(self.num_layers, batch_size, capacity, 2 * self.embed_dim)


def keep_rows(x: Tensor, rows: Tensor, dim: int = 0) -> Tensor:
    """`x[rows]`, in place: only rows that change their place are copied.

    Args:
        x: overwritten.
        rows: what stands at each place from 0.
        dim: which dimension has the rows.

    Returns:
        the beginning of `x`.
    """
    moved = (rows != torch.arange(rows.size(0), device=rows.device)).nonzero().squeeze(1)
    if moved.size(0) > 0:
        x.index_copy_(dim, moved, x.index_select(dim, rows[moved]))
    return x.narrow(dim, 0, rows.size(0))
