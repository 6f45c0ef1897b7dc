"""Who plans, who scores, and what they hand to each other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamSearch
from fairseq_aggdec.decoding.roles import Ragged
from fairseq_aggdec.decoding.search_rules import LogProbs, SearchRules


@dataclass(frozen=True)
class TreeBlock:
    """What one pass reads: tokens of B sentences, each behind a prefix of its own."""

    tokens: Tensor
    """N, sentence by sentence"""
    positions: Tensor
    """N, at which they are read"""
    last_position: int
    """the largest"""
    paths: Tensor
    """N x L: the slots of the sentence's row of the cache that a token sees, in their order; at its own position, and
    behind it, the one that takes it"""
    end: int
    """every slot in use is below"""
    ragged: Ragged
    """whose the tokens are"""

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Node]], end: int, device: torch.device) -> TreeBlock:
        """The block that reads the last tokens of these prefixes, at least one a sentence; slots are below `end`."""
        nodes = list(chain.from_iterable(sentences))
        depths = [node.depth for node in nodes]
        ragged = Ragged.of([len(own) for own in sentences], device)
        last = max(depths)
        numbers = array("q", [node.token for node in nodes] + depths)
        for node in nodes:
            numbers += node.path
            if node.depth < last:
                numbers += node.path[-1:] * (last - node.depth)
        rows = torch.frombuffer(numbers, dtype=torch.long).to(device).view(-1, len(nodes))
        return cls(rows[0], rows[1], last, rows[2:].view(-1, last + 1), end, ragged)


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


def best_entries_behind(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    block: TreeBlock,
    earliest: int,
    sequences: Tensor | None,
) -> Iterator[tuple[Tensor, Tensor, LogProbs | Tensor]]:
    """What `SearchRules.find_entries` returns behind the first n of a block's N tokens; then behind the next.

    No token is read at a position below `earliest`. `sequences` has the decoder's inputs up to each token, N x L,
    padding behind it, for rules that look back.
    """
    first = 0
    for scores in verifier.score_tree(block):  # n x V
        part = slice(first, first + scores.size(0))
        first = part.stop
        sequence = block.tokens[part, None] if sequences is None else sequences[part]
        yield rules.keep(block.ragged.rows[part]).find_entries(
            options.entries, scores, block.positions[part], sequence, earliest, block.last_position
        )


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
        """The prefixes worth scoring beside what is needed, of each sentence that is left; `Node.child` makes them."""

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        """Take in how many steps each sentence's search has made with what was planned last."""

    def keep(self, rows: Tensor) -> None:
        """Forget all sentences but these; the next call has them in this order."""
