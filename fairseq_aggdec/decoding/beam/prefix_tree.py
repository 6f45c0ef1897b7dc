"""The prefixes of one sentence's outputs, and what is known behind them.

A prefix has a slot of the verifier's cache once it has been read there, and a row once it has been scored, which is the
same pass. Both stay: whichever hypothesis comes to a prefix, by whatever way, finds them. Nothing is ever reordered.
What no live hypothesis can come to any more gives its slot back when slots run short.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence

from torch import Tensor

from fairseq_aggdec.decoding.search_rules import LogProbs

_SPARE = 256
"""slots in use from which on those of dead branches are looked for: every slot is one more key to attend to"""


_UNREAD = array("q")


class Row:
    """What may follow a prefix, the search rules applied."""

    __slots__ = ("number", "scores", "tokens", "whole")

    def __init__(
        self, scores: list[float], tokens: list[int], whole: LogProbs | Tensor | None = None, number: int = 0
    ) -> None:
        """Hold the best log-probabilities, falling, and their tokens.

        `whole` has all log-probabilities of several rows, n x V, of which this is row `number`; None where this row is
        a guess or no longer needed.
        """
        self.scores = scores
        self.tokens = tokens
        self.whole = whole
        self.number = number


class Node:
    """A prefix: its last token, behind the prefix of all others."""

    __slots__ = ("children", "depth", "parent", "path", "row", "token", "was_live")

    def __init__(self, token: int, parent: Node | None) -> None:
        """Append a token to the prefix `parent`, which is None for the start symbol alone."""
        self.token = token
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        """the position at which the verifier reads the token"""
        self.children: dict[int, Node] = {}
        self.path = _UNREAD
        """slots of the verifier's cache that have the prefix, token by token; none where it was not read"""
        self.row: Row | None = None
        self.was_live = False
        """whether the search has held it"""

    def child(self, token: int) -> Node:
        """The prefix that is one token longer."""
        node = self.children.get(token)
        if node is None:
            node = self.children[token] = Node(token, self)
        return node

    def tokens(self) -> list[int]:
        """All of them, the start symbol first."""
        tokens = []
        node: Node | None = self
        while node is not None:
            tokens.append(node.token)
            node = node.parent
        return tokens[::-1]


class PrefixTree:
    """All prefixes of one sentence that a search or a planner has come to."""

    def __init__(self, first_token: int) -> None:
        """Begin with the start symbol."""
        self.root = Node(first_token, None)
        self.ending_in: defaultdict[int, list[Node]] = defaultdict(list)
        """by last token, the prefixes that are scored"""
        self._slots: list[Node | None] = []  # what has each slot
        self._free: list[int] = []  # slots that nothing has
        self._whole: defaultdict[int, list[Row]] = defaultdict(list)  # by depth

    @property
    def slots(self) -> int:
        """Every slot in use is below."""
        return len(self._slots)

    def admit(self, wanted: Iterable[Node], vocabulary: int, longest: int) -> list[Node]:
        """Give slots to the prefixes to be read next, and return them with all their parents, each behind its parent.

        `wanted` may be in any order. A prefix that has a slot, is deeper than `longest`, or holds a token outside the
        `vocabulary` of V symbols is left out.
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
            if node.depth <= longest and all(0 <= new.token < vocabulary for new in unread):
                for new in reversed(unread):
                    self._give_slot(new)
                    admitted.append(new)
        return admitted

    def take_in(self, nodes: Sequence[Node], rows: Sequence[Row]) -> None:
        """What a pass has said behind the prefixes that it has read."""
        ending_in, whole = self.ending_in, self._whole
        for node, row in zip(nodes, rows, strict=True):
            node.row = row
            ending_in[node.token].append(node)
            whole[node.depth].append(row)

    def move_on(self, live: Sequence[Node], depth: int) -> None:
        """Give back what a search needs no more that goes on from these prefixes, all of that depth."""
        for past in [past for past in self._whole if past < depth]:
            for row in self._whole.pop(past):
                row.whole = None
        if self.slots - len(self._free) > _SPARE:
            self._free_dead(live)

    def forget(self) -> None:
        """Let go of all prefixes: they hold each other, and would wait for Python's collector of cycles."""
        below = [self.root]
        while below:
            node = below.pop()
            below += node.children.values()
            node.children = {}
            node.parent = None

    def _free_dead(self, live: Sequence[Node]) -> None:
        """Take the slots of all that neither stands before a live prefix nor behind one."""
        in_use: set[int] = set()
        below = list(live)
        while below:
            node = below.pop()
            in_use.update(node.path, () if node.parent is None else node.parent.path)
            below += node.children.values()
        for slot, having in enumerate(self._slots):
            if having is not None and slot not in in_use:
                having.path = _UNREAD
                self._slots[slot] = None
                self._free.append(slot)

    def _give_slot(self, node: Node) -> None:
        if self._free:
            slot = self._free.pop()
            self._slots[slot] = node
        else:
            slot = len(self._slots)
            self._slots.append(node)
        node.path = array("q", [slot]) if node.parent is None else node.parent.path + array("q", [slot])
