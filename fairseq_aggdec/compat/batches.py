"""fairseq's batches: every sentence is in one, and a caller can watch them go by."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fairseq_aggdec.errors import AggdecError


def keeping_the_last(batch_by_size: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Wrap fairseq's `data_utils.batch_by_size`, which after 0.12.2 may drop the last batch.

    It does so unless the batch's size is a multiple of `--required-batch-size-multiple` (default 8): up to 7 sentences
    of a test set would have no output, and with `--batch-size 1` always one. Batches are consecutive pieces of
    `indices`, so the sentences that are missing are the last ones.

    Raises:
        AggdecError: when it makes batches: a sentence is longer than --max-tokens.
    """

    @functools.wraps(batch_by_size)
    def keep_last_batch(indices: Any, *args: Any, fixed_shapes: Any = None, **kwargs: Any) -> list[Any]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64, count=-1)
        if len(indices) == 0:
            return []
        try:
            batches = batch_by_size(indices, *args, fixed_shapes=fixed_shapes, **kwargs)
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise AggdecError(f"--max-tokens is below the longest sentence's length ({error}); give more") from None
        kept = sum(map(len, batches))
        if fixed_shapes is not None or kept == len(indices):
            return batches
        return [*batches, indices[kept:]]

    return keep_last_batch


class WatchedBatches:
    """fairseq's iterator over batches, which also calls a function before each batch, or after the last one."""

    def __init__(
        self,
        batches: Any,
        before_each: Callable[[Any], None] | None = None,
        after_last: Callable[[], None] | None = None,
    ) -> None:
        self._batches = batches
        self._before_each = before_each
        self._after_last = after_last

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            if self._before_each is not None:
                self._before_each(batch)
            yield batch
        if self._after_last is not None:
            self._after_last()

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)
