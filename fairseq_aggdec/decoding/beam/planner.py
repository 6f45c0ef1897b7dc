"""A planner that runs a copy of the search ahead of it, on rows that are guessed where none is known.

Every prefix that the copy comes to and that is not scored yet is worth scoring. A beam changes at most steps: to foresee
one hypothesis saves nothing unless the others that live beside it are foreseen as well, and where the copy takes the
steps of a beam search, it comes to all of them.

The row behind a prefix that is not scored is borrowed from a scored prefix that probably goes on alike, in this order:

    own track     the prefix that the last row came from, one token on: the same text behind an earlier difference
    rejoining     a scored prefix near by that ends in the same token: another text that has come to the same place
    substitution  of the last row's prefix, the likeliest token instead of this one: a word in place of another
    draft         what somebody has drafted for the place
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Planner
from fairseq_aggdec.decoding.beam.search import BeamSearch

_NEAR = 4
"""positions within which two prefixes can have come to the same place"""


class LookAhead(Planner):
    """A `roles.Planner` for one sentence."""

    def __init__(self, budget: int, source: Sequence[int] = ()) -> None:
        """
        Args:
            budget: how many prefixes to score in a pass.
            source: what the output probably resembles, its EOS left out; scored in the first pass.
        """
        self._budget = budget
        self._source = source

    def plan(self, search: BeamSearch, tree: PrefixTree, needed: Sequence[Node]) -> Sequence[Node]:
        """See `roles.Planner.plan`."""
        if tree.root.row is None:
            return self._chain(tree)
        ahead = search.copy()
        wanted: list[Node] = []
        planned = set(needed)
        left = self._budget - len(needed)
        guesses = {node: self._first_guess(node, tree) for node in (hypothesis.node for hypothesis in ahead.live)}
        while left > 0 and not ahead.has_ended:
            live = ahead.live
            rows = [None if (guess := guesses[hypothesis.node]) is None else guess.row for hypothesis in live]
            if not any(rows):
                break
            least = ahead.go_ahead(rows)
            for hypothesis in live:
                node = hypothesis.node
                if node.row is None and hypothesis.score >= least and node not in planned:
                    planned.add(node)
                    wanted.append(node)
                    left -= 1
            following: dict[Node, Node | None] = {}
            for hypothesis in ahead.live:
                node = hypothesis.node
                if node not in following:
                    assert node.parent is not None
                    guess = guesses[node.parent]
                    assert guess is not None
                    following[node] = node if node.row is not None else self._guess(guess, node, tree)
            guesses = following
        return wanted[: self._budget - len(needed)] if left < 0 else wanted

    def _chain(self, tree: PrefixTree) -> list[Node]:
        chain = [tree.root]
        for token in self._source:
            chain.append(chain[-1].child(token))
        return chain

    def _first_guess(self, node: Node, tree: PrefixTree) -> Node | None:
        """Of a live hypothesis, whose parent is scored."""
        if node.row is not None or node.parent is None:
            return node
        return self._guess(node.parent, node, tree)

    def _guess(self, last: Node, node: Node, tree: PrefixTree) -> Node | None:
        """A scored prefix that probably goes on as this one does.

        Args:
            last: the scored prefix whose row stood for the one behind the prefix without its last token.
            node: the prefix.
            tree: of the sentence.
        """
        own = last.children.get(node.token)
        if own is not None and own.row is not None:
            return own
        assert node.parent is not None
        before, best, closest = node.parent.token, None, 2 * _NEAR + 2
        for other in tree.ending_in.get(node.token, ()):
            distance = abs(other.depth - node.depth)
            if distance <= _NEAR and other.parent is not None:
                distance += 0 if other.parent.token == before else _NEAR + 1
                if distance <= closest:
                    best, closest = other, distance
        if best is not None:
            return best
        for token in last.row.tokens if last.row is not None else ():
            sibling = last.children.get(token)
            if sibling is not None and sibling.row is not None:
                return sibling
        return None
