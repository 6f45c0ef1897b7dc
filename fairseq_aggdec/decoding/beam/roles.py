"""The roles of aggressive beam search, plan and verifier, and the data that they exchange."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Rows
from fairseq_aggdec.decoding.beam.search import BeamSearch
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Ragged, RowSelection


@dataclass(frozen=True)
class TreeBlock:
    """The input of one pass: tokens of B sentences, each after its prefix. Tensors are on the host."""

    tokens: Tensor
    """N, sentence by sentence"""
    positions: Tensor
    """N, the position of each token"""
    first_position: int
    last_position: int
    """the least and the largest position"""
    paths: Tensor
    """N x L: the cache slots that a token attends to, position by position; the token's slot from its position on"""
    end: int
    """upper bound of the slots in use, exclusive"""
    ragged: Ragged
    """the sentence of each token"""

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Node]], end: int) -> TreeBlock:
        """The block that reads the last tokens of these prefixes, at least one a sentence; slots are below `end`."""
        nodes = list(chain.from_iterable(sentences))
        depths = [node.depth for node in nodes]
        ragged = Ragged.of([len(nodes) for nodes in sentences], torch.device("cpu"))
        last = max(depths)
        values = array("q", [node.token for node in nodes] + depths)
        for node in nodes:
            values += node.path
            if node.depth < last:
                values += node.path[-1:] * (last - node.depth)
        rows = torch.frombuffer(values, dtype=torch.long).view(-1, len(nodes))
        return cls(
            rows[0],
            rows[1],
            min(depths),
            last,
            rows[2:].view(-1, last + 1),
            end,
            ragged,
        )

    def on(self, device: torch.device) -> TreeBlock:
        """The same block with tensors on a device."""
        if self.tokens.device == device:
            return self
        tokens, positions, paths = (
            part.to(device) for part in (self.tokens, self.positions, self.paths)
        )
        return replace(
            self,
            tokens=tokens,
            positions=positions,
            paths=paths,
            ragged=Ragged.of(self.ragged.widths, device),
        )


class Entries(NamedTuple):
    """The best scores after N tokens of a block, under the search rules."""

    values: Tensor
    """N x E log-probabilities in descending order, on the host"""
    names: Tensor
    """N x E, their tokens, on the host"""
    whole: Rows | None
    """all log-probabilities after each token, minus infinity where a rule bans the next one; None where the verifier
    leaves equal sums of a beam in their order, since fairseq's own order on its device is no promise"""


class TreeVerifier(Protocol):
    """The model that is decoded."""

    def verify_tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        """Read a block, and return the `count` best entries after its tokens, in chunks.

        `sequences`: the decoder's inputs up to each token, N x L, padded after it, on the host, for the n-gram rule;
        None without that rule.
        """

    def keep(self, order: RowSelection) -> None:
        """Keep only these sentences."""


@dataclass
class Sentence:
    """A sentence while it is searched."""

    index: int
    """its place in the batch"""
    tree: PrefixTree
    search: BeamSearch
    needed: list[Node]
    """the prefixes that the search waits for"""


Plan = Callable[[Sentence], Sequence[Node]]
"""Chooses the prefixes of a sentence to score beside the needed ones; `Node.child` makes them"""
