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

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from fairseq_aggdec.decoding.beam.drafted_rows import RowDrafter
from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Planner, Sentence

_NEAR = 4
"""positions within which two prefixes can have come to the same place"""


class AheadSchedule(Protocol):
    """Decides how far to simulate."""

    def is_worth_it(self, group: Sequence[int], sentences: int, drafted: bool) -> bool:
        """Whether the prefixes that a simulated step has come to are worth scoring.

        Args:
            group: of each simulated step from the one that the search waits for, how many prefixes it comes to that are
                not scored; of the last one it is asked.
            sentences: in the batch.
            drafted: whether a model's draft was there to be borrowed from.
        """

    def draft_pays(self, beam: int, sentences: int) -> bool:
        """Whether to ask a model for its drafts, for so many sentences at once."""

    def learn(self, distance: int, was_used: bool, drafted: bool) -> None:
        """Take in whether the search has come to a prefix that was scored so many steps ahead of it."""


class FixedBudget(AheadSchedule):
    """So many prefixes of a sentence in every pass."""

    def __init__(self, prefixes: int) -> None:
        """
        Args:
            prefixes: of a pass.
        """
        self._prefixes = prefixes

    def is_worth_it(self, group: Sequence[int], sentences: int, drafted: bool) -> bool:
        return sum(group) <= self._prefixes

    def draft_pays(self, beam: int, sentences: int) -> bool:
        return True

    def learn(self, distance: int, was_used: bool, drafted: bool) -> None:
        pass


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
        self._ahead: dict[int, list[_Ahead]] = {}  # by sentence, what was scored ahead

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        """See `roles.Planner.plan`."""
        drafts: Sequence[dict[int, Row]] = [{}] * len(sentences)
        if self._drafter is not None and self._schedule.draft_pays(len(sentences[0].search.live), len(sentences)):
            drafts = self._drafter.behind(sentences)
        plans: list[Sequence[Node]] = []
        copies = self._sources is not None and self._resemblance.is_enough
        for sentence, draft in zip(sentences, drafts, strict=True):
            if copies and sentence.tree.root.row is None:
                assert self._sources is not None
                plans.append(_chain(sentence.tree, self._sources[sentence.number]))
            else:
                ahead = _Simulation(sentence, draft).prefixes(self._schedule, len(sentences))
                self._ahead.setdefault(sentence.number, []).extend(ahead)
                plans.append([one.node for one in ahead])
        return plans

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        """See `roles.Planner.learn`."""
        for sentence in sentences:
            self._learn(sentence)
            if sentence.search.has_ended and self._sources is not None:
                best = sentence.search.outputs()[:1]
                self._resemblance.learn(self._sources[sentence.number], best[0].tokens if best else ())

    def _learn(self, sentence: Sentence) -> None:
        """What has become of prefixes that the search is past."""
        search, waiting = sentence.search, []
        for one in self._ahead.pop(sentence.number, ()):
            if one.node.depth < search.taken or search.has_ended:
                self._schedule.learn(one.distance, one.node.was_live, one.drafted)
            else:
                waiting.append(one)
        self._ahead[sentence.number] = waiting

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
        """
        Args:
            sentence: as far as it is.
            drafts: of a depth, the row that a model has drafted for prefixes of it.
        """
        self._sentence = sentence
        self._drafts = drafts
        self._guesses: dict[Node, tuple[Row | None, Node | None]] = {}
        """of each live prefix, the row behind it, and the scored prefix whose row that is, if any"""

    def prefixes(self, schedule: AheadSchedule, sentences: int) -> list[_Ahead]:
        """What is not scored and the search comes to, beside what it waits for."""
        drafted = bool(self._drafts)
        if not schedule.is_worth_it([len(self._sentence.needed), 1], sentences, drafted):  # then no step is
            return []
        search = self._sentence.search.copy()
        known = set(self._sentence.needed)
        groups: list[int] = []
        ahead: list[_Ahead] = []
        for hypothesis in search.live:
            self._guess(hypothesis.node)
        while not search.has_ended:
            live = search.live
            rows = [self._guesses[hypothesis.node][0] for hypothesis in live]
            if not any(rows):
                break
            least = search.go_ahead(rows)
            group = [
                node for hypothesis in live
                if hypothesis.score >= least and (node := hypothesis.node).row is None and node not in known
            ]  # fmt: skip
            groups.append(len(group) if groups else len(known))
            if group and len(groups) > 1:
                if not schedule.is_worth_it(groups, sentences, drafted):
                    break
                known.update(group)
                ahead += [_Ahead(len(groups) - 1, node, drafted) for node in group]
            for hypothesis in search.live:
                self._guess(hypothesis.node)
        return ahead

    def _guess(self, node: Node) -> None:
        if node not in self._guesses:
            self._guesses[node] = (node.row, node) if node.row is not None else self._borrowed(node)

    def _borrowed(self, node: Node) -> tuple[Row | None, Node | None]:
        if node.parent is None:
            return self._drafts.get(0), None
        last = node.parent if node.parent.row is not None else self._guesses[node.parent][1]
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
