"""Batches of sources, and shards of batches; neither depends on the number of workers."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairseq_aggdec.bulk.data_bin import Tokens
from fairseq_aggdec.bulk.folder import Shard

_SEED = 1


@dataclass(frozen=True)
class BatchPlan:
    """The batches of one split.

    A translation can depend on the other sentences of its batch (padding, rounding of matrix products), so the batches
    depend on nothing but the data and the limits.

    Attributes:
        representative: of each sentence the index of the first one with the same source; -1 where it is skipped.
        batches: the indices of the sentences of each batch, with different sources of similar length. The batch with
            the longest sources comes first, the others in random order: shards take equally long, and so do parts.
    """

    representative: list[int]
    batches: list[list[int]]

    @property
    def skipped(self) -> list[int]:
        """The indices of the sentences that are not decoded."""
        return [
            index
            for index, representative in enumerate(self.representative)
            if representative < 0
        ]

    def shards(self, split: str, sentences: int) -> list["BatchShard"]:
        """The batches in shards of `sentences` sentences or a little more; the last one may have fewer."""
        shards: list[BatchShard] = []
        batches: list[list[int]] = []
        for count, batch in enumerate(self.batches, start=1):
            batches.append(batch)
            if sum(map(len, batches)) >= sentences or count == len(self.batches):
                shards.append(BatchShard(split, len(shards), batches))
                batches = []
        return shards


@dataclass(frozen=True)
class BatchShard(Shard):
    """Batches of one split that are decoded together."""

    split: str
    number: int
    batches: list[list[int]]
    """the indices of each batch's sentences"""

    @property
    def origin(self) -> str:
        return self.split

    @property
    def sentences(self) -> list[int]:
        """The indices of all its sentences, in the order of its outputs."""
        return [sentence for batch in self.batches for sentence in batch]

    @property
    def size(self) -> int:
        return sum(map(len, self.batches))


def plan_batches(
    sources: Iterable[Tokens],
    longest_source: int,
    max_tokens: int,
    batch_size: int | None = None,
) -> BatchPlan:
    """Group sources by length.

    Args:
        sources: all sources of a split, EOS included.
        longest_source: the most tokens of a source, EOS included; longer ones are skipped.
        max_tokens: the most tokens of a batch, padding included; a batch of one sentence may have more.
        batch_size: the most sentences of a batch; None for any number.
    """
    first: dict[bytes, int] = {}
    representative: list[int] = []
    lengths: dict[int, int] = {}
    for index, tokens in enumerate(sources):
        is_skipped = not 0 < len(tokens) <= longest_source
        representative.append(
            -1 if is_skipped else first.setdefault(tokens.tobytes(), index)
        )
        if representative[-1] == index:
            lengths[index] = len(tokens)
    order = sorted(lengths, key=lengths.__getitem__, reverse=True)
    batches = []
    start = 0
    while start < len(order):
        size = max(1, max_tokens // lengths[order[start]])
        batches.append(order[start : start + min(size, batch_size or size)])
        start += len(batches[-1])
    shuffled = np.random.RandomState(_SEED).permutation(np.arange(1, len(batches)))
    return BatchPlan(representative, batches[:1] + [batches[i] for i in shuffled])
