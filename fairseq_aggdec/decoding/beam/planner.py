"""A planner that runs a copy of the search ahead of it, on rows that are guessed where none is known.

Every prefix that the copy comes to and that is not scored yet is worth scoring. A beam changes at most steps: to
foresee one hypothesis saves nothing unless the others that live beside it are foreseen too, and where the copy takes
the steps of a beam search, it comes to all of them.

The row behind a prefix that is not scored is borrowed from a scored prefix that probably goes on alike, in this order:

    own track     the prefix that the last row came from, one token on: the same text behind an earlier difference
    rejoining     a scored prefix near by that ends in the same token: another text that has come to the same place
    draft         what a model has drafted for the place
    substitution  of the last row's prefix, the likeliest token instead of this one: a word in place of another
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from fairseq_aggdec.decoding.beam.drafted_rows import RowDrafter
from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Planner, Sentence

_NEAR = 4
"""positions within which two prefixes can have come to the same place"""


class Reach(Protocol):
    """How far one sentence's simulation goes in a pass: step by step from the one behind what the search waits for."""

    def pays(self) -> bool:
        """Whether the prefixes of the next step are worth scoring."""

    def go_on(self, prefixes: int) -> None:
        """Take in that so many prefixes of that step will be scored."""


class AheadSchedule(Protocol):
    """Decides how far to simulate."""

    def pays(self, beam: int, sentences: int) -> bool:
        """Whether to score anything ahead, in batches of so many sentences."""

    def reach(self, needed: int, sentences: int, drafted: bool) -> Reach:
        """Begin a simulation where the search waits for `needed` prefixes; `drafted`: a model's draft is there."""

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """Whether to ask a model for its drafts, for so many sentences at once."""

    def learn(self, scored: Sequence[tuple[int, bool]], drafted: bool) -> None:
        """Take in of each prefix how many steps ahead it was scored, and whether the search has come to it."""


class FixedBudget(AheadSchedule):
    """Whole steps, until so many prefixes of a sentence are in a pass."""

    def __init__(self, prefixes: int) -> None:
        """Score this many prefixes of a sentence in a pass, beside those that the search waits for."""
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
    """What is left of a `FixedBudget`."""

    def __init__(self, prefixes: int) -> None:
        self._left = prefixes

    def pays(self) -> bool:
        return self._left > 0

    def go_on(self, prefixes: int) -> None:
        self._left -= prefixes


class Resemblance:
    """How much outputs have resembled their sources of late: the share of a source's words that its output has, too."""

    _ENOUGH = 0.4
    """where the whole source is worth scoring"""
    _NEWS = 0.1
    """the share of the last sentence in the mean"""

    def __init__(self) -> None:
        self._mean = 1.0

    @property
    def is_enough(self) -> bool:
        return self._mean >= self._ENOUGH

    def learn(self, source: Sequence[int], output: Sequence[int]) -> None:
        """Take in what became of a sentence."""
        words = set(source)
        if words:
            self._mean += self._NEWS * (len(words & set(output)) / len(words) - self._mean)


class LookAhead(Planner):
    """A `roles.Planner` by simulation."""

    def __init__(
        self,
        schedule: AheadSchedule,
        sources: Sequence[Sequence[int]] | None = None,
        resemblance: Resemblance | None = None,
        drafter: RowDrafter | None = None,
    ) -> None:
        """
        Args:
            schedule: how far to look ahead.
            sources: what each sentence's output perhaps resembles, EOS left out; scored in its first pass.
            resemblance: whether outputs do; None for yes.
            drafter: ready to draft for this batch.
        """
        self._schedule = schedule
        self._sources = sources
        self._resemblance = resemblance or Resemblance()
        self._drafter = drafter
        self._waiting: dict[int, list[_Ahead]] = {}  # by sentence, what was scored ahead and may still be used

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        """See `roles.Planner.plan`."""
        beam = sentences[0].search.size
        drafts: Sequence[dict[int, Row]] = [{}] * len(sentences)
        if self._drafter is not None and self._schedule.draft_pays(beam, len(sentences)):
            drafts = self._drafter.behind(sentences)
        plans: list[Sequence[Node]] = []
        pays: dict[tuple[int, bool], bool] = {}  # by how many prefixes are waited for, and whether there is a draft
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
        """What a simulation comes to; it is remembered, for `learn`."""
        reach = self._schedule.reach(len(sentence.needed), sentences, bool(draft))
        ahead = _Simulation(sentence, draft).prefixes(reach)
        self._waiting.setdefault(sentence.number, []).extend(ahead)
        return [one.node for one in ahead]

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        """See `roles.Planner.learn`."""
        for sentence in sentences:
            if self._waiting.get(sentence.number):
                self._learn(sentence)
            if sentence.search.has_ended and self._sources is not None:
                best = sentence.search.outputs()[:1]
                self._resemblance.learn(self._sources[sentence.number], best[0].tokens if best else ())

    def _learn(self, sentence: Sentence) -> None:
        """What has become of prefixes that the search is past."""
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

    def keep(self, rows: Tensor) -> None:
        if self._drafter is not None:
            self._drafter.keep(rows)


class _Ahead(NamedTuple):
    """A prefix that was scored before the search asked for it."""

    distance: int
    """steps ahead of the search"""
    node: Node
    drafted: bool
    """whether a model's draft was there to be borrowed from"""


def _chain(tree: PrefixTree, tokens: Sequence[int]) -> list[Node]:
    """A text, prefix by prefix."""
    chain = [tree.root]
    for token in tokens:
        chain.append(chain[-1].child(token))
    return chain


class _Simulation:
    """A search ahead of the search."""

    def __init__(self, sentence: Sentence, drafts: Mapping[int, Row]) -> None:
        """Simulate from where a sentence is; `drafts` has, by depth, the rows that a model has drafted."""
        self._sentence = sentence
        self._drafts = drafts
        self._borrowed: dict[Node, tuple[Row | None, Node | None]] = {}
        """of a prefix that is not scored, the row that it borrows, and the scored prefix whose row that is, if any"""

    def prefixes(self, reach: Reach) -> list[_Ahead]:
        """What is not scored and the search comes to, beside what it waits for."""
        search = self._sentence.search.copy()
        drafted = bool(self._drafts)
        ahead: list[_Ahead] = []
        distance = 0
        while not search.has_ended:
            live = search.live
            rows = [hypothesis.node.row or self._borrowed_row(hypothesis.node) for hypothesis in live]
            if not any(rows):
                break
            least = search.go_ahead(rows)
            if distance > 0:  # what the search waits for is scored anyway
                group = [one.node for one in live if one.node.row is None and one.score >= least]
                if group and not reach.pays():
                    break
                reach.go_on(len(group))
                ahead += [_Ahead(distance, node, drafted) for node in group]
            distance += 1
        return ahead

    def _borrowed_row(self, node: Node) -> Row | None:
        if node not in self._borrowed:
            self._borrowed[node] = self._borrow(node)
        return self._borrowed[node][0]

    def _borrow(self, node: Node) -> tuple[Row | None, Node | None]:
        if node.parent is None:
            return self._drafts.get(0), None
        last = node.parent if node.parent.row is not None else self._borrowed[node.parent][1]
        own = None if last is None else last.children.get(node.token)
        if own is not None and own.row is not None:
            return own.row, own
        alike = self._alike(node, node.parent.token)
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

    def _alike(self, node: Node, before: int) -> Node | None:
        """A scored prefix near by that ends in the same token, best behind the same token before."""
        found, closest = None, 2 * _NEAR + 1
        for other in self._sentence.tree.ending_in.get(node.token, ()):
            distance = abs(other.depth - node.depth)
            if distance <= _NEAR and other.parent is not None:
                distance += 0 if other.parent.token == before else _NEAR + 1
                if distance <= closest:
                    found, closest = other, distance
        return found
