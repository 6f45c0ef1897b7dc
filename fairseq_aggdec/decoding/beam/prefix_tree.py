"""The prefixes of one sentence's outputs, their cache slots and their rows.

One pass reads a prefix into a slot of the verifier's cache, and scores the row after it. Slot and row stay with the
prefix, whichever hypothesis reaches it; nothing is reordered. Prefixes that no live hypothesis can reach give their
slots back when slots run short.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from torch import Tensor

_SLOTS_BEFORE_CLEANUP = 256
"""slots in use from which dead branches are freed; every slot is one more key to attend to"""

_NO_PATH = array("q")


class Rows(Protocol):
    """Rows of log-probabilities, computed or copied on access."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Tensor:
        """One row, V."""


class Row:
    """The scores of the next token after a prefix, after the search rules."""

    __slots__ = ("index", "scores", "tokens", "whole")

    def __init__(
        self,
        scores: list[float],
        tokens: list[int],
        whole: Rows | None = None,
        index: int = 0,
    ) -> None:
        """Store the best log-probabilities, in descending order, and their tokens.

        `whole`: all log-probabilities of several rows, n x V, of which this is row `index`; None where this row is no
        longer needed, or where equal sums keep their order.
        """
        self.scores = scores
        self.tokens = tokens
        self.whole = whole
        self.index = index


class Node:
    """A prefix: its last token, and the prefix before it."""

    __slots__ = ("children", "depth", "parent", "path", "row", "token")

    def __init__(self, token: int, parent: Node | None) -> None:
        """Append a token to the prefix `parent`; None: the token is the start symbol."""
        self.token = token
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        """the position at which the verifier reads the token"""
        self.children: dict[int, Node] = {}
        self.path = _NO_PATH
        """the cache slot of each token of the prefix; empty where it was not read"""
        self.row: Row | None = None

    def child(self, token: int) -> Node:
        """The prefix extended by a token."""
        node = self.children.get(token)
        if node is None:
            node = self.children[token] = Node(token, self)
        return node

    def tokens(self) -> list[int]:
        """All tokens of the prefix, the start symbol first."""
        tokens = []
        node: Node | None = self
        while node is not None:
            tokens.append(node.token)
            node = node.parent
        return tokens[::-1]


class PrefixTree:
    """All prefixes of one sentence that a search or its plan has reached."""

    def __init__(self, first_token: int) -> None:
        self.root = Node(first_token, None)
        self.ending_in: defaultdict[int, list[Node]] = defaultdict(list)
        """the scored prefixes by last token"""
        self._slots: list[Node | None] = []  # the prefix in each slot
        self._free: list[int] = []  # empty slots
        # rows with `whole`, by depth
        self._whole: defaultdict[int, list[Row]] = defaultdict(list)

    @property
    def slots(self) -> int:
        """Upper bound of the slots in use, exclusive."""
        return len(self._slots)

    def admit(
        self, wanted: Iterable[Node], vocabulary: int, longest: int
    ) -> list[Node]:
        """Give a cache slot to each wanted prefix and to its ancestors without one.

        Wanted prefixes that have a slot, are deeper than `longest`, or hold a token outside 0 to `vocabulary` - 1 are
        left out.

        Returns the prefixes that were given a slot; an ancestor comes before its descendants.
        """
        admitted: list[Node] = []
        for node in wanted:
            if node.path:
                continue
            unread = []
            above: Node | None = node
            while above is not None and not above.path:
                unread.append(above)
                above = above.parent
            if node.depth <= longest and all(
                0 <= new.token < vocabulary for new in unread
            ):
                for new in reversed(unread):
                    self._give_slot(new)
                    admitted.append(new)
        return admitted

    def take_in(self, nodes: Sequence[Node], rows: Sequence[Row]) -> None:
        """Store the rows that a pass has scored after these prefixes."""
        ending_in = self.ending_in
        whole = self._whole
        for node, row in zip(nodes, rows, strict=True):
            node.row = row
            ending_in[node.token].append(node)
            whole[node.depth].append(row)

    def move_on(self, live: Sequence[Node], depth: int) -> None:
        """Free the memory that a search with these live prefixes, all of this depth, no longer needs."""
        for past in [past for past in self._whole if past < depth]:
            for row in self._whole.pop(past):
                row.whole = None
        if self.slots - len(self._free) > _SLOTS_BEFORE_CLEANUP:
            self._free_dead(live)

    def forget(self) -> None:
        """Break the reference cycles between prefixes, so that their memory is freed at once."""
        below = [self.root]
        while below:
            node = below.pop()
            below += node.children.values()
            node.children = {}
            node.parent = None

    def _free_dead(self, live: Sequence[Node]) -> None:
        """Free the slots of prefixes that are neither parents nor extensions of a live prefix."""
        in_use: set[int] = set()
        below = list(live)
        while below:
            node = below.pop()
            in_use.update(node.path, () if node.parent is None else node.parent.path)
            below += node.children.values()
        for slot, holder in enumerate(self._slots):
            if holder is not None and slot not in in_use:
                holder.path = _NO_PATH
                self._slots[slot] = None
                self._free.append(slot)

    def _give_slot(self, node: Node) -> None:
        if self._free:
            slot = self._free.pop()
            self._slots[slot] = node
        else:
            slot = len(self._slots)
            self._slots.append(node)
        node.path = (
            array("q", [slot])
            if node.parent is None
            else node.parent.path + array("q", [slot])
        )
