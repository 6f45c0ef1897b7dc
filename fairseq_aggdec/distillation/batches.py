"""Which sources are decoded together: the same batches whatever the number of shards, and wherever a run stopped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairseq_aggdec.distillation.data_bin import Tokens

_SEED = 1


@dataclass(frozen=True)
class BatchPlan:
    """The batches of one split.

    A translation can depend on what else is in its batch (padding, the rounding of a matrix product), so the batches
    follow from the data and the limits alone.

    Attributes:
        representative: for each sentence the number of the first one with the same source; -1 where it is skipped.
        batches: sentence numbers, each with another source, of similar length; the one with the longest first, the
            others in random order, so that the shards are alike and the time left can be told.
    """

    representative: np.ndarray
    batches: list[np.ndarray]

    @property
    def skipped(self) -> np.ndarray:
        """Numbers of the sentences that are not decoded."""
        return np.flatnonzero(self.representative < 0)

    def of_shard(self, shard: int, shards: int) -> range:
        """Numbers of the batches that belong to one of `shards` shards (the first is shard 0)."""
        return range(shard, len(self.batches), shards)


def plan_batches(sources: Iterable[Tokens], longest: int, max_tokens: int, batch_size: int | None = None) -> BatchPlan:
    """Groups sources by length.

    Args:
        sources: all of a split, EOS included.
        longest: a longer source (EOS included) is skipped.
        max_tokens: sentences times the length of the longest is at most this, unless it is one sentence.
        batch_size: at most so many sentences, if given.
    """
    first: dict[bytes, int] = {}
    representative = []
    distinct, lengths = [], []
    for number, tokens in enumerate(sources):
        if not 0 < len(tokens) <= longest:
            representative.append(-1)
            continue
        known = first.setdefault(tokens.tobytes(), number)
        representative.append(known)
        if known == number:
            distinct.append(number)
            lengths.append(len(tokens))

    order = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable")
    numbers = np.array(distinct, dtype=np.int64)[order]
    batches, start = [], 0
    while start < len(numbers):
        size = max(1, max_tokens // lengths[order[start]])
        size = min(size, batch_size) if batch_size else size
        batches.append(numbers[start : start + size])
        start += size
    shuffled = np.random.RandomState(_SEED).permutation(np.arange(1, len(batches)))
    return BatchPlan(np.array(representative, dtype=np.int64), batches[:1] + [batches[i] for i in shuffled])
