"""Buffers that stay where they are from batch to batch, and the few sizes in which passes use them."""

import operator
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fairseq_aggdec.engine.cuda.packets import sent
from fairseq_aggdec.engine.layers import KVCache

MOST_ROWS = 1024
"""the most rows of a pass that is captured"""
_WIDTHS = (1, 4, 8, 16, 32)
_POSITIONS, _SOURCE = 64, 32  # the smallest buckets
_MOST_KEPT = 2**30
"""numbers of a memory up to which it is kept for batches that need less"""


def rows_bucket(rows: int) -> int:
    """Round a number of rows up."""
    return 1 << (rows - 1).bit_length()


def width_bucket(width: int) -> int:
    """Round the width of a block up."""
    return next((wide for wide in _WIDTHS if wide >= width), -(-width // _WIDTHS[-1]) * _WIDTHS[-1])


def tree_width_bucket(width: int) -> int:
    """Round the number of a sentence's tokens in a tree up; a beam has mostly four or five hypotheses."""
    return width if width <= _WIDTHS[1] + 1 else width_bucket(width)


def positions_bucket(positions: int) -> int:
    """Round a number of cached positions up."""
    return max(_POSITIONS, rows_bucket(positions))


def source_bucket(length: int) -> int:
    """Round the length of the longest source up."""
    return max(_SOURCE, rows_bucket(length))


class StaticCache(KVCache):
    """A `KVCache` in a memory that serves batch after batch, with the sources' keys and values.

    The first rows of the memory are the batch's. Only a batch that needs more rows or positions moves it.
    """

    def __init__(self, num_layers: int, heads: int, head_dim: int, moved: Callable[[], None]) -> None:
        """`moved` is called when another memory takes the place of the present one."""
        super().__init__(num_layers, heads, head_dim)
        self._whole, self._cross, self._padding = self._none, self._none, torch.empty(0, 0, dtype=torch.bool)
        self._moved = moved
        self.source = 0
        """bucket of the length of this batch's sources"""

    def start(self, batch_size: int, like: Tensor) -> None:
        raise NotImplementedError("a batch starts with its sources")

    def start_with(self, keys_values: Tensor, padding: Tensor | None) -> None:
        """Prepare for a new batch.

        Args:
            keys_values: of the sources, layers x B x H x S x 2D/H, of any strides.
            padding: B x S, the hidden positions.
        """
        batch_size, length = keys_values.size(1), keys_values.size(3)
        rows, source = rows_bucket(batch_size), source_bucket(length)
        self._fit(rows, source, positions_bucket(2 * length), keys_values)
        self.source, self._batch_size = source, batch_size
        # hidden entries have weight zero, and zero times NaN is NaN: an overflow in the last batch must not stay
        self._whole[:, :rows].zero_()
        cross, hidden = self._cross[:, :rows, :, :source], self._padding[:rows, :source]
        cross.zero_()
        cross[:, :batch_size, :, :length] = keys_values
        hidden.fill_(True)
        hidden[:batch_size, :length] = False if padding is None else padding
        hidden[batch_size:] = False
        self._open()

    def reserve(self, length: int) -> None:
        if length > self._whole.size(3):
            wider = self._new(self._whole.size(1), positions_bucket(length), self._whole)
            wider[:, :, :, : self._whole.size(3)] = self._whole
            self._replace(wider)
            self._open()

    def of_rows(self, rows: int) -> KVCache:
        """The memory of the first rows, which may be more than the batch has."""
        view = KVCache(self._none.size(0), self._none.size(2), self._none.size(4) // 2)
        view.memory, view._batch_size = self._whole[:, :rows], rows
        view._number_places()
        return view

    def sources_of_rows(self, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the sources, layers x R x H x S x 2D/H, and their hidden positions, R x S."""
        return self._cross[:, :rows, :, : self.source], self._padding[:rows, : self.source]

    def keep_order(self, rows: Sequence[int], moved: Sequence[int]) -> None:
        """Keep only these rows, in this order; `moved`: the places that get another row."""
        if moved:
            places, taken = sent([moved, [rows[place] for place in moved]], self._whole.device)
            for held, dim in ((self._whole, 1), (self._cross, 1), (self._padding, 0)):
                held.index_copy_(dim, places, held.index_select(dim, taken))
        self._batch_size = len(rows)
        self._open()

    def _open(self) -> None:
        self.memory = self._whole[:, : self._batch_size]
        self._number_places()

    def _fit(self, rows: int, source: int, capacity: int, like: Tensor) -> None:
        """Have memory for this many rows and positions; where it has to grow, for what earlier batches needed, too."""
        whole, cross = self._whole, self._cross
        is_same = whole.dtype == like.dtype and whole.device == like.device
        needed, held = (rows, source, capacity), (whole.size(1), cross.size(3), whole.size(3))
        if is_same and all(map(operator.ge, held, needed)) and whole.numel() + cross.numel() <= _MOST_KEPT:
            return
        more = tuple(map(max, needed, held))
        layers, _, heads, _, size = self._none.shape
        if is_same and layers * more[0] * heads * (more[1] + more[2]) * size <= _MOST_KEPT:
            needed = more
        self._whole = self._cross = self._none  # frees the old memory before more is allocated
        rows, source, capacity = needed
        self._replace(self._new(rows, capacity, like))
        self._cross = self._new(rows, source, like)
        with torch.inference_mode(False):
            self._padding = torch.zeros(rows, source, dtype=torch.bool, device=like.device)

    def _replace(self, memory: Tensor) -> None:
        self._moved()
        self._whole = memory

    @torch.inference_mode(False)  # it outlives the batch
    def _new(self, rows: int, capacity: int, like: Tensor) -> Tensor:
        return self._allocated(rows, capacity, like)
