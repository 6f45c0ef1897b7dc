"""Static buffers, which keep their addresses from batch to batch, and the sizes (buckets) in which passes use them."""

import math
import operator
from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_aggdec.engine.choose_backend import memory_of
from fairseq_aggdec.engine.plain.layers import KVCache

STATIC = "static"
"""entry of the encoder output of a captured pass: states, embeddings and padding in buffers that stay where they are"""
MOST_TOKENS = 4096
"""tokens of a pass, padding up to its bucket included, above which arithmetic takes longer than kernel launches"""
_WIDTHS = (1, 4, 8, 16, 32)
# the smallest buckets
_POSITIONS = 64
_SOURCE = 32
_SHARE_KEPT = 0.25
"""of a device's memory: larger buffers do not grow beyond what a batch needs"""


def rows_bucket(rows: int) -> int:
    """Round a count of rows up."""
    return 1 << (rows - 1).bit_length()


def width_bucket(width: int) -> int:
    """Round the width of a block up."""
    for wide in _WIDTHS:
        if wide >= width:
            return wide
    return -(-width // _WIDTHS[-1]) * _WIDTHS[-1]


def tree_width_bucket(width: int) -> int:
    """Round the count of a sentence's prefixes up; a beam mostly has four or five."""
    return width if width <= 5 else width_bucket(width)


def positions_bucket(positions: int) -> int:
    """Round a count of cached positions up."""
    return max(_POSITIONS, rows_bucket(positions))


def source_bucket(length: int) -> int:
    """Round the length of the longest source up."""
    return max(_SOURCE, rows_bucket(length))


class StaticCache(KVCache):
    """A `KVCache` in static buffers, beside the keys and values of the sources.

    The first rows of the memory are those of the batch. Only a batch that needs more rows or positions has it
    allocated anew.
    """

    def __init__(
        self,
        num_layers: int,
        heads: int,
        head_dim: int,
        moved: Callable[[int], None],
    ) -> None:
        """`moved` is called with the new capacity when the buffers are allocated anew."""
        super().__init__(num_layers, heads, head_dim)
        self._sizes = (num_layers, heads, head_dim)
        self._whole = self._none
        self._cross = self._none
        self._padding = torch.empty(0)
        self._moved = moved
        self.source = 0
        """positions to which this batch's sources are padded"""

    @property
    def rows(self) -> int:
        """The bucket of the rows that are left."""
        return rows_bucket(self._batch_size)

    def start_with(self, batch_size: int, length: int, like: Tensor) -> None:
        """Reserve room for a new batch with sources of this length; `fill` writes them."""
        source = source_bucket(length)
        capacity = positions_bucket(2 * length)
        self._fit(rows_bucket(batch_size), source, capacity, like)
        self._batch_size = batch_size
        self.source = source
        self._open()

    def fill(self, cross: Tensor, padding: Tensor) -> None:
        """Write keys and values, layers x R x H x S x 2D/H, and hidden positions, R x S, of sources; clear the cache.

        Hidden entries have weight zero, and zero times NaN is NaN: an overflow in the last batch must not stay.
        """
        keys, hidden = self.sources(cross.size(1))
        keys.copy_(cross)
        hidden.copy_(padding)
        self._whole[:, : cross.size(1)].zero_()

    def reserve(self, length: int) -> None:
        capacity = self._whole.size(3)
        if length > capacity:
            rows = self._whole.size(1)
            wider = self._new(rows, positions_bucket(length), self._whole)
            wider[:, :, :, :capacity] = self._whole
            self._replace(wider)
            self._open()

    def of_rows(self, rows: int) -> KVCache:
        """The memory of the first rows; the batch may have fewer."""
        view = KVCache(*self._sizes)
        view.memory = self.memory_of(rows)
        view._batch_size = rows
        return view

    def memory_of(self, rows: int) -> Tensor:
        """Keys and values of the first rows, layers x R x H x capacity x 2D/H."""
        return self._whole[:, :rows]

    def sources(self, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the first rows' sources, layers x R x H x S x 2D/H, and hidden positions, R x S."""
        cross = self._cross[:, :rows, :, : self.source]
        padding = self._padding[:rows, : self.source]
        return cross, padding

    def move(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Put other rows into some places; a function of a graph, from M places and the M rows."""
        places, rows = inputs.view(2, -1)
        cross, padding = self.sources(self._whole.size(1))
        by_dimension = (
            (self._whole, 1),
            (cross, 1),
            (padding, 0),
        )
        for x, dim in by_dimension:
            moved = x.index_select(dim, rows)
            x.index_copy_(dim, places, moved)
        return (inputs[:0],)

    def shrink(self, rows: int) -> None:
        """Leave out all but the first rows."""
        self._batch_size = rows

    def _open(self) -> None:
        self.memory = self._whole[:, : self._batch_size]

    def _fit(
        self,
        rows: int,
        source: int,
        capacity: int,
        like: Tensor,
    ) -> None:
        """Reserve room for so many rows and positions: new buffers are new graphs, so old ones are kept.

        Buffers that grow in one size shrink in no other, unless both together take too much of the device's memory.
        """
        whole = self._whole
        is_alike = (whole.dtype, whole.device) == (like.dtype, like.device)
        needed = (rows, source, capacity)
        held = (
            whole.size(1),
            self._cross.size(3),
            whole.size(3),
        )
        if is_alike and all(map(operator.ge, held, needed)):
            return

        # large enough for the last batches, too, unless that is too large
        larger = tuple(map(max, needed, held))
        positions = larger[0] * (larger[1] + larger[2])
        elements = 2 * positions * math.prod(self._sizes)
        size = elements * like.element_size()
        if is_alike and size <= _SHARE_KEPT * memory_of(like.device):
            rows, source, capacity = larger

        # the old memory is freed before more is allocated
        self._whole = self._cross = self.memory = self._none
        self._replace(self._new(rows, capacity, like))
        self._cross = self._new(rows, source, like)
        with torch.inference_mode(False):
            self._padding = torch.zeros(
                rows, source, dtype=torch.bool, device=like.device
            )

    def _replace(self, memory: Tensor) -> None:
        self._moved(memory.size(3))  # graphs that read the old memory end
        self._whole = memory

    @torch.inference_mode(False)  # it outlives the batch
    def _new(self, rows: int, capacity: int, like: Tensor) -> Tensor:
        return self._allocated(rows, capacity, like)
