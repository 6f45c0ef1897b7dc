"""Which prefixes to score ahead: a copy of the search runs ahead, on guessed rows where none is known.

Every prefix that the copy reaches and that is not scored yet is worth scoring. To foresee one hypothesis saves nothing
unless the others of its beam are foreseen, too; a copy that takes the steps of a beam search reaches all of them.

The row after a prefix that is not scored is borrowed from a scored prefix with a similar continuation, in this order:

    own track     the source of the parent's row, extended by this token: the same text after an earlier difference
    rejoining     a scored prefix near by that ends in the same token: another text that has reached the same place
    substitution  the source of the parent's row, extended by its likeliest scored token: one word for another
"""

from collections.abc import Sequence

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Sentence

_MAX_SHIFT = 4
"""largest difference in depth between prefixes that may have reached the same place"""


def look_ahead(
    sentence: Sentence, sources: Sequence[Sequence[int]], prefixes: int
) -> list[Node]:
    """The prefixes of a sentence to score in a pass beside those that the search waits for, about so many.

    In the first pass these are all beginnings of its source (`sources`: of the batch, without EOS), from which the next
    ones borrow.
    """
    tree = sentence.tree
    if prefixes == 0:
        return []
    if tree.root.row is None:
        return _chain(tree, sources[sentence.index])
    search = sentence.search.copy()
    guesses = _Guesses(tree)
    ahead: list[Node] = []
    is_first = True  # of whose prefixes the search waits for all that are not scored
    while not search.has_ended:
        live = search.live
        rows = [
            hypothesis.node.row or guesses.row(hypothesis.node) for hypothesis in live
        ]
        if not any(rows):
            break
        least = search.step_on_guesses(rows)
        if not is_first:
            step = [
                one.node for one in live if one.node.row is None and one.score >= least
            ]
            if step and len(ahead) >= prefixes:
                break
            ahead += step
        is_first = False
    return ahead


def _chain(tree: PrefixTree, tokens: Sequence[int]) -> list[Node]:
    """All beginnings of a text."""
    chain = [tree.root]
    for token in tokens:
        chain.append(chain[-1].child(token))
    return chain


class _Guesses:
    """The rows that prefixes without one borrow during a pass."""

    def __init__(self, tree: PrefixTree) -> None:
        self._tree = tree
        # by prefix without a row, the scored prefix that lends one, if any
        self._lenders: dict[Node, Node | None] = {}

    def row(self, node: Node) -> Row | None:
        """The row that a prefix without one borrows."""
        if node not in self._lenders:
            self._lenders[node] = self._lender(node)
        lender = self._lenders[node]
        return None if lender is None else lender.row

    def _lender(self, node: Node) -> Node | None:
        if node.parent is None:
            return None
        last = (
            node.parent if node.parent.row is not None else self._lenders[node.parent]
        )
        own = None if last is None else last.children.get(node.token)
        if own is not None and own.row is not None:
            return own
        alike = self._similar_node(node, node.parent.token)
        if alike is not None:
            return alike
        if last is not None and last.row is not None:
            for token in last.row.tokens:
                sibling = last.children.get(token)
                if sibling is not None and sibling.row is not None:
                    return sibling
        return None

    def _similar_node(self, node: Node, before: int) -> Node | None:
        """A scored prefix of nearly the same length that ends in the same token, preferably after the same token."""
        found = None
        closest = 2 * _MAX_SHIFT + 1
        for other in self._tree.ending_in.get(node.token, ()):
            distance = abs(other.depth - node.depth)
            if distance <= _MAX_SHIFT and other.parent is not None:
                distance += 0 if other.parent.token == before else _MAX_SHIFT + 1
                if distance <= closest:
                    found = other
                    closest = distance
        return found
