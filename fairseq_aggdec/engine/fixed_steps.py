"""A decoder's step in a few fixed shapes over fixed memory, so that it can be recorded once and repeated.

A step reads some tokens of every row of a batch. Its shape is rounded up to powers of two: rows, columns, positions
attended to, source positions attended to. What is behind a row's tokens is read too and overwritten by the next block;
rows behind the batch are read into memory that belongs to no sentence. What depends on numbers (where the tokens stand,
what they see) is computed from tensors of fixed places: `cuda_graph` says why.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_aggdec.engine.cuda_graph import Capture, Replay, Results
from fairseq_aggdec.engine.kv_cache import KVCache

_LEAST_KEYS = 64  # positions of the output
_LEAST_SOURCE = 32
_CAPACITY = 256  # positions that there is room for from the start: more room means recording anew
_MOST_TOKENS = 1024  # a step; above, computing takes longer than asking for it
_MOST_STEPS = 64  # recorded at a time; the one that was not used for the longest time makes room


def power_of_two(count: int, least: int = 1) -> int:
    """The smallest power of two that is at least `count`, at least 1, and `least`, a power of two itself."""
    return max(least, 1 << (count - 1).bit_length())


@dataclass(frozen=True)
class FixedMemory:
    """What a step of a fixed shape reads and writes besides its tokens."""

    cache: KVCache
    """of as many rows as the step"""
    cross: Tensor
    """layers x B x H x S x 2D/H, keys and values of the source, keys first"""
    cross_mask: Tensor
    """B x 1 x 1 x S, additive"""
    keys: int
    """L, how many positions of the output are attended to"""


Step = Callable[[FixedMemory, Tensor, tuple[Tensor, ...]], Results]
"""
Of a memory, tokens (B x W) and numbers of each row (B): results, B x ... each. It may depend on nothing else but
weights, and on the numbers in tensors only by operations on tensors.
"""


@dataclass(frozen=True)
class _Recorded:
    tokens: Tensor
    """B x W, read by the step"""
    numbers: tuple[Tensor, ...]
    """B each"""
    replay: Replay


class FixedSteps:
    """The steps of one decoder that have been recorded, and the memory that they share."""

    def __init__(self, capture: Capture, cache: KVCache, use_positions: Callable[[int], object], widths: int) -> None:
        """
        Args:
            capture: records them.
            cache: the decoder's, which every batch has to `start` here.
            use_positions: called with a number of positions before any up to it are used in a recording.
            widths: W is at least this, a power of two.
        """
        self._capture = capture
        self._cache = cache
        self._use_positions = use_positions
        self._least_width = widths
        self._cross = torch.empty(0)  # layers x rows x H x S x 2D/H
        self._cross_mask = torch.empty(0)  # rows x 1 x 1 x S
        self._source = 0  # S of the batch at hand
        self._recorded: dict[tuple[int, ...], _Recorded] = {}  # the last one used is the last
        self._caches: dict[int, KVCache] = {}  # by the number of rows
        self._version = 0  # of the cache that they were recorded with

    def start(self, keys_values: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """Take a new batch.

        Args:
            keys_values: of the source, layers x B x H x S x 2D/H, keys first.
            hidden: B x S, what is padding; None for nothing.

        Returns:
            the same in fixed memory, more padding behind it, and an additive mask: layers x B x H x S' x 2D/H and
            B x 1 x 1 x S'. They are the batch's, to drop rows of in place.
        """
        batch_size, length = keys_values.size(1), keys_values.size(3)
        rows, source = power_of_two(batch_size), power_of_two(length, _LEAST_SOURCE)
        self._cache.start(batch_size, keys_values, room=rows)
        self._cache.reserve(_CAPACITY)
        self._cache.forget(rows)  # a NaN of another sentence would survive the mask
        self._reserve_source(rows, source, keys_values)
        self._source = source
        cross, mask = self._cross[:, :batch_size, :, :source], self._cross_mask[:batch_size, ..., :source]
        cross[:, :, :, :length].copy_(keys_values)
        cross[:, :, :, length:].zero_()
        self._cross_mask[:rows, ..., :source].zero_()  # rows behind the batch see all of it: all hidden would be NaN
        mask[..., length:].fill_(-math.inf)
        if hidden is not None:
            mask[:, 0, 0, :length].masked_fill_(hidden, -math.inf)
        return cross, mask

    def run(
        self, step: Step, tokens: Tensor, numbers: tuple[Tensor, ...], longest: int, kind: int = 0
    ) -> Results | None:
        """What a step says of a block.

        Args:
            step: always the same one for a `kind`.
            tokens: B x W.
            numbers: B each, where the block begins first.
            longest: the largest of those, as the host knows it.
            kind: tells steps apart that differ in more than their shapes.

        Returns:
            the step's results, B x ... each, W rounded up: to be read, or overwritten, before the next call. None where
            the block is so large that recording it does not pay.
        """
        rows, width = tokens.shape
        fixed_rows, fixed_width = power_of_two(rows), power_of_two(width, self._least_width)
        if fixed_rows * fixed_width > _MOST_TOKENS:
            return None
        keys = power_of_two(longest + fixed_width, _LEAST_KEYS)
        self._cache.reserve(keys)
        if self._cache.version != self._version:
            self._drop()
            self._version = self._cache.version
            self._use_positions(self._cache.capacity)
        key = (kind, fixed_rows, fixed_width, keys, self._source)
        recorded = self._recorded.pop(key, None)
        if recorded is None:
            places = tokens.new_zeros(fixed_rows, fixed_width)
            inputs = tuple(number.new_zeros(fixed_rows) for number in numbers)
            _fill(places, inputs, tokens, numbers)  # recording may run the step
            recorded = self._record(step, places, inputs, keys)
        else:
            _fill(recorded.tokens, recorded.numbers, tokens, numbers)
        self._recorded[key] = recorded
        return tuple(result[:rows] for result in recorded.replay())

    def _record(self, step: Step, tokens: Tensor, numbers: tuple[Tensor, ...], keys: int) -> _Recorded:
        if len(self._recorded) >= _MOST_STEPS:
            self._capture.wait()
            del self._recorded[next(iter(self._recorded))]
        rows = tokens.size(0)
        if rows not in self._caches:
            self._caches[rows] = self._cache.over(rows)
        cross, mask = self._cross[:, :rows, :, : self._source], self._cross_mask[:rows, ..., : self._source]
        memory = FixedMemory(self._caches[rows], cross, mask, keys)
        return _Recorded(tokens, numbers, self._capture(lambda: step(memory, tokens, numbers)))

    def _reserve_source(self, rows: int, source: int, like: Tensor) -> None:
        old = self._cross
        if old.dim() == 5:
            if (old.dtype, old.device) == (like.dtype, like.device) and old.size(1) >= rows and old.size(3) >= source:
                return
            rows, source = max(rows, old.size(1)), max(source, old.size(3))
        self._drop()
        layers, _, heads, _, width = like.shape
        self._cross = like.new_zeros(layers, rows, heads, source, width)
        self._cross_mask = like.new_zeros(rows, 1, 1, source)

    def _drop(self) -> None:
        """Forget all recordings: they were made with memory that is not used any more."""
        if self._recorded:
            self._capture.wait()
        self._recorded.clear()
        self._caches.clear()


def _fill(places: Tensor, inputs: tuple[Tensor, ...], tokens: Tensor, numbers: tuple[Tensor, ...]) -> None:
    """Put a block into the memory that a step reads; behind it stands what an earlier block of the shape has left."""
    rows, width = tokens.shape
    places[:rows, :width].copy_(tokens)
    for place, number in zip(inputs, numbers, strict=True):
        place[:rows].copy_(number)
