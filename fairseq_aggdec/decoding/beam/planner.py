"""A planner that runs a copy of the search ahead, on guessed rows where none is known.

Every prefix that the copy reaches and that is not scored yet is worth scoring. To foresee one hypothesis saves nothing
unless the others of its beam are foreseen, too; a copy that takes the steps of a beam search reaches all of them.

The row after a prefix that is not scored is borrowed from a scored prefix with a similar continuation, in this order:

    own track     the source of the parent's row, extended by this token: the same text after an earlier difference
    rejoining     a scored prefix near by that ends in the same token: another text that has reached the same place
    draft         the row that a model has drafted for the place
    substitution  the source of the parent's row, extended by its likeliest scored token: one word for another
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from fairseq_aggdec.decoding.beam.drafted_rows import RowDrafter
from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Planner, Sentence
from fairseq_aggdec.decoding.tokens import Order

_MAX_SHIFT = 4
"""largest difference in depth between prefixes that may have reached the same place"""


class Reach(Protocol):
    """Decides step by step how far the simulation of a sentence goes in a pass."""

    def pays(self) -> bool:
        """Whether the prefixes of the next step are worth scoring."""

    def extend(self, prefixes: int) -> None:
        """Add the next step, of `prefixes` prefixes."""


class AheadSchedule(Protocol):
    """Decides how far to simulate."""

    def pays(self, beam: int, sentences: int) -> bool:
        """Whether to look ahead at all, in batches of `sentences` sentences."""

    def reach(self, needed: int, sentences: int, drafted: bool) -> Reach:
        """Begin a simulation where the search waits for `needed` prefixes; `drafted`: with a model's draft."""

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """Whether a model should draft for `sentences` sentences at once."""

    def learn(self, scored: Sequence[tuple[int, bool]], drafted: bool) -> None:
        """Learn from prefixes: the steps ahead at which each was scored, and whether the search reached it."""


class FixedBudget(AheadSchedule):
    """Looks ahead by whole steps until a pass has a number of prefixes for each sentence."""

    def __init__(self, prefixes: int) -> None:
        """`prefixes`: the number scored ahead, beside those that the search waits for."""
        self._prefixes = prefixes

    def pays(self, beam: int, sentences: int) -> bool:
        return self._prefixes > 0

    def reach(self, needed: int, sentences: int, drafted: bool) -> Reach:
        return _Budget(self._prefixes)

    def draft_pays(self, beam: int, sentences: int) -> bool:
        return True

    def learn(self, scored: Sequence[tuple[int, bool]], drafted: bool) -> None:
        pass


class _Budget(Reach):
    """The rest of a `FixedBudget`."""

    def __init__(self, prefixes: int) -> None:
        self._left = prefixes

    def pays(self) -> bool:
        return self._left > 0

    def extend(self, prefixes: int) -> None:
        self._left -= prefixes


class Resemblance:
    """Running mean of the resemblance of outputs to sources: the share of a source's words that its output has, too."""

    _MIN_RESEMBLANCE = 0.4
    """least mean at which the whole source is worth scoring"""
    _SMOOTHING = 0.1
    """weight of the last sentence in the mean"""

    def __init__(self) -> None:
        self._mean = 1.0

    @property
    def is_enough(self) -> bool:
        return self._mean >= self._MIN_RESEMBLANCE

    def learn(self, source: Sequence[int], output: Sequence[int]) -> None:
        """Update the mean by a sentence."""
        words = set(source)
        if words:
            self._mean += self._SMOOTHING * (len(words & set(output)) / len(words) - self._mean)


class LookAhead(Planner):
    """A `roles.Planner` by simulation."""

    def __init__(
        self,
        schedule: AheadSchedule,
        sources: Sequence[Sequence[int]] | None = None,
        resemblance: Resemblance | None = None,
        drafter: RowDrafter | None = None,
    ) -> None:
        """`sources`: without EOS, to be scored in the first pass as guesses of the outputs, if `resemblance` allows it.

        `drafter`: ready to draft for this batch.
        """
        self._schedule = schedule
        self._sources = sources
        self._resemblance = resemblance or Resemblance()
        self._drafter = drafter
        self._waiting: dict[int, list[_Ahead]] = {}  # by sentence, prefixes scored ahead that may still be used

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        beam = sentences[0].search.size
        drafts: Sequence[dict[int, Row]] = [{}] * len(sentences)
        if self._drafter is not None and self._schedule.draft_pays(beam, len(sentences)):
            drafts = self._drafter.behind(sentences)
        plans: list[Sequence[Node]] = []
        pays: dict[tuple[int, bool], bool] = {}  # by the number of needed prefixes, and whether there is a draft
        for sentence, draft in zip(sentences, drafts, strict=True):
            if self._sources is not None and sentence.tree.root.row is None:
                looks_ahead = self._schedule.reach(beam, len(sentences), False).pays()
                source = self._sources[sentence.number] if looks_ahead and self._resemblance.is_enough else ()
                plans.append(_chain(sentence.tree, source))
            else:
                state = len(sentence.needed), bool(draft)
                if state not in pays:
                    pays[state] = self._schedule.reach(state[0], len(sentences), state[1]).pays()
                plans.append(self._ahead(sentence, draft, len(sentences)) if pays[state] else ())
        return plans

    def _ahead(self, sentence: Sentence, draft: Mapping[int, Row], sentences: int) -> Sequence[Node]:
        """The prefixes that a simulation reaches; they are stored for `learn`."""
        reach = self._schedule.reach(len(sentence.needed), sentences, bool(draft))
        ahead = _Simulation(sentence, draft).prefixes(reach)
        self._waiting.setdefault(sentence.number, []).extend(ahead)
        return [one.node for one in ahead]

    def learn(self, sentences: Sequence[Sentence]) -> None:
        for sentence in sentences:
            if self._waiting.get(sentence.number):
                self._learn(sentence)
            if sentence.search.has_ended and self._sources is not None:
                best = sentence.search.outputs()[:1]
                self._resemblance.learn(self._sources[sentence.number], best[0].tokens if best else ())

    def _learn(self, sentence: Sentence) -> None:
        """Learn from the prefixes that the search has passed."""
        past = math.inf if sentence.search.has_ended else sentence.search.taken
        waiting: list[_Ahead] = []
        scored: tuple[list[tuple[int, bool]], ...] = ([], [])
        for one in self._waiting[sentence.number]:
            distance, node, drafted = one
            if node.depth < past:
                scored[drafted].append((distance, node.was_live))
            else:
                waiting.append(one)
        self._waiting[sentence.number] = waiting
        for with_draft in (False, True):
            if scored[with_draft]:
                self._schedule.learn(scored[with_draft], with_draft)

    def keep(self, order: Order) -> None:
        if self._drafter is not None:
            self._drafter.keep(order)


class _Ahead(NamedTuple):
    """A prefix scored before the search needed it."""

    distance: int
    """steps ahead of the search"""
    node: Node
    drafted: bool
    """whether the simulation had a model's draft"""


def _chain(tree: PrefixTree, tokens: Sequence[int]) -> list[Node]:
    """All prefixes of a text."""
    chain = [tree.root]
    for token in tokens:
        chain.append(chain[-1].child(token))
    return chain


class _Simulation:
    """A copy of a sentence's search that runs ahead."""

    def __init__(self, sentence: Sentence, drafts: Mapping[int, Row]) -> None:
        """Simulate from the present state of a sentence; `drafts`: rows drafted by a model, by depth."""
        self._sentence = sentence
        self._drafts = drafts
        self._borrowed: dict[Node, tuple[Row | None, Node | None]] = {}
        """by prefix without a row, the borrowed row, and the scored prefix that it comes from, if any"""

    def prefixes(self, reach: Reach) -> list[_Ahead]:
        """The prefixes to score ahead, without those that the search waits for."""
        search = self._sentence.search.copy()
        drafted = bool(self._drafts)
        ahead: list[_Ahead] = []
        distance = 0
        while not search.has_ended:
            live = search.live
            rows = [hypothesis.node.row or self._borrowed_row(hypothesis.node) for hypothesis in live]
            if not any(rows):
                break
            least = search.step_on_guesses(rows)
            if distance > 0:  # the prefixes at distance 0 are scored anyway: the search waits for them
                group = [one.node for one in live if one.node.row is None and one.score >= least]
                if group and not reach.pays():
                    break
                reach.extend(len(group))
                ahead += [_Ahead(distance, node, drafted) for node in group]
            distance += 1
        return ahead

    def _borrowed_row(self, node: Node) -> Row | None:
        if node not in self._borrowed:
            self._borrowed[node] = self._guess_from_similar(node)
        return self._borrowed[node][0]

    def _guess_from_similar(self, node: Node) -> tuple[Row | None, Node | None]:
        if node.parent is None:
            return self._drafts.get(0), None
        last = node.parent if node.parent.row is not None else self._borrowed[node.parent][1]
        own = None if last is None else last.children.get(node.token)
        if own is not None and own.row is not None:
            return own.row, own
        alike = self._similar_node(node, node.parent.token)
        if alike is not None:
            return alike.row, alike
        draft = self._drafts.get(node.depth)
        if draft is not None:
            return draft, None
        if last is not None and last.row is not None:
            for token in last.row.tokens:
                sibling = last.children.get(token)
                if sibling is not None and sibling.row is not None:
                    return sibling.row, sibling
        return None, None

    def _similar_node(self, node: Node, before: int) -> Node | None:
        """A scored prefix of nearly the same length that ends in the same token, preferably after the same token."""
        found, closest = None, 2 * _MAX_SHIFT + 1
        for other in self._sentence.tree.ending_in.get(node.token, ()):
            distance = abs(other.depth - node.depth)
            if distance <= _MAX_SHIFT and other.parent is not None:
                distance += 0 if other.parent.token == before else _MAX_SHIFT + 1
                if distance <= closest:
                    found, closest = other, distance
        return found
