"""Batches that tell when they are taken."""

from collections.abc import Callable, Iterator
from typing import Any


class AnnouncedBatches:
    """An iterator over batches that calls back before each or after the last one; the rest is fairseq's."""

    def __init__(
        self, batches: Any, at_each: Callable[[Any], None] | None = None, at_end: Callable[[], None] | None = None
    ) -> None:
        self._batches = batches
        self._at_each = at_each
        self._at_end = at_end

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            if self._at_each is not None:
                self._at_each(batch)
            yield batch
        if self._at_end is not None:
            self._at_end()

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)
