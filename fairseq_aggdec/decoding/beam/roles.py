"""The roles of aggressive beam search, planner and verifier, and the data that they exchange."""

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
    """The input of one pass: tokens of B sentences, each behind a prefix of its own."""

    tokens: Tensor
    """N, sentence by sentence"""
    positions: Tensor
    """N, the position of each token"""
    last_position: int
    """the largest position"""
    paths: Tensor
    """N x L: the cache slots that a token attends to, position by position; its own slot from its position on"""
    end: int
    """upper bound of the slots in use, exclusive"""
    ragged: Ragged
    """the sentence of each token"""

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
    """The model that is decoded."""

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """Read a block. Returns scores as `decoding.roles.Verifier.score`."""

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences, in this order."""


def best_entries_behind(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    block: TreeBlock,
    earliest: int,
    sequences: Tensor | None,
) -> Iterator[tuple[Tensor, Tensor, LogProbs | Tensor]]:
    """The results of `SearchRules.find_entries` behind the N tokens of a block, in chunks.

    `earliest`: lower bound of the positions. `sequences`: the decoder's inputs up to each token, N x L, padded behind
    it, for the n-gram rule; None without that rule.
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
    """A sentence while it is searched."""

    number: int
    """its number in the batch"""
    tree: PrefixTree
    search: BeamSearch
    needed: list[Node]
    """the prefixes that the search waits for"""


class Planner(Protocol):
    """Chooses prefixes that will probably be needed soon. The output does not depend on the planner."""

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        """The prefixes of each sentence to score beside the needed ones; `Node.child` makes them."""

    def learn(self, sentences: Sequence[Sentence]) -> None:
        """Learn from the progress of each search with the last plan."""

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences, in this order."""
