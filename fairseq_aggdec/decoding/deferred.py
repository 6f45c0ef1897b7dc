"""Drafters that are made when a draft is wanted: in a large batch that may be never."""

from collections.abc import Callable, Sequence

from torch import Tensor

from fairseq_aggdec.decoding.loop import Drafter


class DeferredDrafter(Drafter):
    """Another drafter, of those rows that are left when it is first asked for a draft."""

    def __init__(self, make: Callable[[Tensor | None], Drafter], block_size: int | None = None) -> None:
        """
        Args:
            make: given the numbers of some rows of the batch, or None for all, returns a drafter for them.
            block_size: its.
        """
        self._make = make
        self._rows: Tensor | None = None
        self._made: Drafter | None = None
        self.block_size = block_size

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`."""
        if self._made is None:
            self._made = self._make(self._rows)
        self._made.block_size = self.block_size
        return self._made.propose(tokens, lengths, lengths_host)

    def unread(self, lengths_host: Sequence[int]) -> int:
        return sum(lengths_host) if self._made is None else self._made.unread(lengths_host)

    def kinds(self) -> Sequence[int] | None:
        return None if self._made is None else self._made.kinds()

    def learn(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        if self._made is not None:
            self._made.learn(drafted, accepted)

    def keep(self, rows: Tensor) -> None:
        if self._made is not None:
            self._made.keep(rows)
        else:
            self._rows = rows if self._rows is None else self._rows[rows]
