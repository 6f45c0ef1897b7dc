"""Who plans, who scores, and what they hand to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree
from fairseq_aggdec.decoding.beam.search import BeamSearch
from fairseq_aggdec.decoding.roles import Ragged


@dataclass(frozen=True)
class TreeBlock:
    """What one pass reads: tokens of B sentences, each behind a prefix of its own."""

    tokens: Tensor
    """N, sentence by sentence"""
    positions: Tensor
    """N, at which they are read"""
    last_position: int
    """the largest"""
    slots: Tensor
    """N, where the sentence's row of the cache takes them"""
    hidden: Tensor
    """B x W x L: which slots a token does not see; junk behind a sentence's tokens"""
    ragged: Ragged
    """whose the tokens are"""

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Node]], slots: int, device: torch.device) -> TreeBlock:
        """The block that reads these prefixes' last tokens.

        Args:
            sentences: of each, the prefixes; at least one.
            slots: every slot in use is below.
            device: of the verifier.
        """
        nodes = list(chain.from_iterable(sentences))
        depths = [node.depth for node in nodes]
        numbers = [node.token for node in nodes] + depths + [node.slot for node in nodes]
        ragged = Ragged.of([len(own) for own in sentences], device)
        size = -(-slots // 8)
        seen = b"".join([node.sees.to_bytes(size, "little") for node in nodes])
        packed = torch.frombuffer(bytearray(seen), dtype=torch.uint8).view(-1, size).to(device)
        bits = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=device)
        hidden = (packed[..., None] & bits).eq(0).flatten(1)  # N x 8 size
        tokens, positions, places = torch.tensor(numbers, device=device).view(3, -1).unbind()
        return cls(tokens, positions, max(depths), places, ragged.spread(hidden), ragged)


class TreeVerifier(Protocol):
    """The model whose beam search is wanted."""

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """Read a block.

        Returns:
            what follows each of the block's N tokens, piece by piece: n x V logits or log-probabilities, the
            temperature applied, of the first n tokens; then of the next.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all sentences but these; the next call has them in this order."""


@dataclass
class Sentence:
    """A sentence on its way."""

    number: int
    """in the batch as it began"""
    tree: PrefixTree
    search: BeamSearch
    """as far as the rows reach"""
    needed: list[Node]
    """what the search waits for"""


class Planner(Protocol):
    """Says which prefixes will probably be needed soon. The output does not depend on it."""

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        """What else is worth scoring of each sentence, beside what is needed.

        Args:
            sentences: those that are left, in the order of the batch. Prefixes that are wanted are made with
                `Node.child`.
        """

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        """Take in how many steps each sentence's search has made with what was planned last."""

    def keep(self, rows: Tensor) -> None:
        """Forget all sentences but these; the next call has them in this order."""


class NoLookAhead(Planner):
    """Ordinary beam search: one position a live hypothesis."""

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        return [()] * len(sentences)

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        pass

    def keep(self, rows: Tensor) -> None:
        pass
