"""fairseq's batches: no sentence is lost, also when a training is resumed; and an iterator that calls functions."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fairseq_aggdec.errors import AggdecError


def with_last_batch(
    batch_by_size: Callable[..., list[Any]],
) -> Callable[..., list[Any]]:
    """Wrap fairseq's `data_utils.batch_by_size`, which after 0.12.2 may drop the last batch.

    It drops a last batch whose size is no multiple of `--required-batch-size-multiple` (default 8): up to 7 sentences
    of a test set, and with `--batch-size 1` always one, would have no output. Batches are consecutive slices of
    `indices`, so the last sentences are missing.

    Raises `AggdecError` on a call where a sentence is longer than --max-tokens or --max-tokens-valid.
    """

    @functools.wraps(batch_by_size)
    def batch_all(
        indices: Any, *args: Any, fixed_shapes: Any = None, **kwargs: Any
    ) -> list[Any]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64, count=-1)
        if len(indices) == 0:
            return []
        try:
            batches = batch_by_size(indices, *args, fixed_shapes=fixed_shapes, **kwargs)
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise AggdecError(
                f"--max-tokens (--max-tokens-valid for validation) is below the longest sentence's length ({error}); "
                "give more"
            ) from None
        kept = sum(map(len, batches))
        if fixed_shapes is not None or kept == len(indices):
            return batches
        return [*batches, indices[kept:]]

    return batch_all


def with_resumed_batches(get_batch_iterator: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `FairseqTask.get_batch_iterator`, so that a resumed training continues with the same batches.

    fairseq after 0.12.2 draws the order of sentences of equal length by seed and epoch when the iterator is built. An
    uninterrupted training uses the batches of epoch 1 in all epochs. A training resumed in epoch 3 had other batches
    and the old position among them, so that it missed some sentences of that epoch and read others twice.
    """

    @functools.wraps(get_batch_iterator)
    def get(self: Any, dataset: Any, *args: Any, epoch: int = 1, **options: Any) -> Any:
        serves_all_epochs = (
            not options.get("disable_iterator_cache")
            and not options.get("update_epoch_batch_itr")
            and not getattr(self.cfg, "rebuild_batches", False)
            and self.can_reuse_epoch_itr(dataset)
        )
        if not serves_all_epochs or epoch == 1 or dataset in self.dataset_to_epoch_iter:
            return get_batch_iterator(self, dataset, *args, epoch=epoch, **options)
        iterator = get_batch_iterator(self, dataset, *args, epoch=1, **options)
        dataset.set_epoch(epoch)
        iterator.epoch = epoch
        return iterator

    return get


class WatchedBatches:
    """Wraps fairseq's iterator over batches, and calls a function before each batch, or after the last one."""

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
