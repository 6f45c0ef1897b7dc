"""How many drafted tokens are worth verifying, where a wider block costs more.

One row's block costs a CPU little more than one token, since the weights have to be read anyway. Many rows make the
arithmetic bind: then every drafted token that is not accepted costs as much as one that is, and beyond some width (for
a batch that is large enough: from the first token on) a draft loses more than it saves. So does, even for one row, the
draft of a drafter that is seldom right. What is accepted never depends on it, only when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairseq_aggdec.decoding.draft_record import DraftRecord, TailRecord

_LEAST_GAIN = 1.1
"""what a draft that is still to be made has to promise: estimates are no better"""
_ASKING = 1.5
"""what it costs to ask a drafter that costs nothing else, in rows"""
_PROBES = 0.005
"""share of the cost that may go into drafts of full width, to learn whether they have become better"""
_RECONSIDERED = 32
"""rows to learn from before it is considered again whether to draft: that takes time, and estimates change slowly"""
_ALIKE = 4
"""kinds from this number on are one"""

PACKING = 4
"""what it costs to read a block without its padding, in rows"""


@dataclass(frozen=True)
class DrafterCost:
    """What a drafter's drafts cost, in rows of the verifier."""

    call: float
    """each draft, of a whole batch"""
    drafted: float
    """each drafted token"""
    unread: float
    """each token that has to be read first"""
    start: float = 0.0
    """the first draft of a batch, beside that"""


class _Step(NamedTuple):
    """A bit more of some drafts."""

    gain: float
    """tokens that it promises"""
    cost: float
    """rows"""
    kind: int
    """of the drafts; of all of them where they are cut alike"""


class _Best(NamedTuple):
    """The first steps that promise most tokens for their cost."""

    steps: int
    cost: float
    """of the block, in rows"""
    full_cost: float
    """of the block with all steps"""


class _Choice(NamedTuple):
    """What was found best for a number of rows."""

    width: int
    cost: float
    """of the block, in rows"""
    full_cost: float
    """of the block at full width"""
    unread: int
    """tokens that the drafter had to read"""


class DraftWidth:
    """Chooses widths by the tokens that they promise a second, learning how often drafted tokens pass.

    A block, the verifier's or the drafter's, is taken to cost as much as so many rows and its own.
    """

    def __init__(self, free_rows: float, drafter: DrafterCost | None = None, acceptance: float = 0.7) -> None:
        """
        Args:
            free_rows: rows of a block that cost as much as reading the weights and all that is paid once a block.
            drafter: what drafts cost; None for next to nothing.
            acceptance: the probability to begin with.
        """
        self._free_rows = free_rows
        self._drafter = drafter
        self._record = DraftRecord(acceptance)
        self._spent = 0.0  # since the last probe
        self._probing = False
        self._chosen: dict[tuple[int, int, bool, bool], _Choice] = {}  # until enough is learnt
        self._tails = TailRecord()
        self._learnt = 0  # rows, since then

    def choose(self, rows: int, longest: int, unread: int = 0, packs: bool = False, position: int | None = None) -> int:
        """The best longest draft for the next block, 0 for none, before anything is drafted.

        Now and then it is `longest`, whatever was learnt, so that a drafter can recover.

        Args:
            rows: B.
            longest: the longest draft that there can be.
            unread: tokens that the drafter has to read first.
            packs: whether the verifier can read each row's draft to a width of its own.
            position: how many tokens the longest row has, its start symbol counted; 1 begins a batch. None: unknown.
        """
        begins = False
        if position is not None and self._drafter is not None:
            if position == 1:
                self._chosen.clear()
            self._tails.see(rows, position)
            begins = unread >= max(rows, position)
        key = (rows, longest, packs, begins)
        known = self._chosen.get(key)
        # a drafter that does not pay does not with more to read, either
        costs = self._drafter is not None and known is not None and unread != known.unread
        if known is None or (costs and (known.width > 0 or unread < known.unread)):
            known = self._chosen[key] = self._choose(rows, longest, unread, packs, begins)
        width, cost, full_cost, _ = known
        self._spent += cost
        self._probing = width < longest and full_cost - cost < _PROBES * self._spent
        if width == longest or self._probing:
            self._spent = 0.0
        return longest if self._probing else width

    def see(self, lengths: Sequence[int], kinds: Sequence[int] | None = None) -> None:
        """Take in how long each row's draft is, of a drafter that may have none.

        Args:
            lengths: of the drafts.
            kinds: see `loop.Drafter.kinds`; None: all are alike.
        """
        self._record.see(lengths, _alike(kinds, len(lengths)))
        self._reconsider(len(lengths))

    def cut(self, lengths: Sequence[int], kinds: Sequence[int] | None = None, packs: bool = False) -> list[int]:
        """The lengths to which drafts that are there are best cut, 0 for none.

        Args:
            lengths: of each row's draft.
            kinds: see `loop.Drafter.kinds`; None: all are alike.
            packs: whether the verifier can read each row's draft to a width of its own; if not, all are cut to one.
        """
        if self._probing:
            return list(lengths)
        kinds = _alike(kinds, len(lengths))
        having: dict[int, list[int]] = {}  # by kind, rows whose draft has a first token, a second, ...
        for kind, length in zip(kinds, lengths, strict=True):
            ends = having.setdefault(kind, [])
            ends.extend([0] * (length - len(ends)))
            if length > 0:
                ends[length - 1] += 1
        for ends in having.values():
            for place in range(len(ends) - 1, 0, -1):
                ends[place - 1] += ends[place]
        rows = len(lengths)
        steps = self._steps(rows, having, packs)
        chosen = steps[: self._best(rows, steps, PACKING if packs else 0).steps]
        if not packs:
            return [min(length, len(chosen)) for length in lengths]
        widths = dict.fromkeys(having, 0)
        for step in chosen:
            widths[step.kind] += 1
        return [min(length, widths[kind]) for kind, length in zip(kinds, lengths, strict=True)]

    def learn(self, drafted: Sequence[int], accepted: Sequence[int], kinds: Sequence[int] | None = None) -> None:
        """Take in how many tokens of each row's draft passed."""
        if any(drafted):
            self._record.learn(drafted, accepted, _alike(kinds, len(drafted)))
            self._reconsider(len(drafted))

    def _reconsider(self, rows: int) -> None:
        """Forget decisions once so many rows were learnt from since they were made."""
        self._learnt += rows
        if self._learnt >= _RECONSIDERED:
            self._learnt = 0
            self._chosen.clear()

    def _choose(self, rows: int, longest: int, unread: int, packs: bool, begins: bool) -> _Choice:
        having: Mapping[int, Sequence[float]]
        if self._drafter is not None:
            once, having = self._drafter.call + self._drafter.unread * unread, {0: [float(rows)] * longest}
            packs = False
        else:
            once, having = _ASKING, self._record.expected(rows, longest)
            once += PACKING if packs else 0
        steps = self._steps(rows, having, packs, 0 if self._drafter is None else self._drafter.drafted)
        best = self._best(rows, steps, once, _LEAST_GAIN)
        width = best.steps
        if self._drafter is not None and width > 0:
            # worth it until all rows have ended? what is paid once is paid for what is left alone
            left = self._tails.left(rows)
            each = 1 + sum(step.gain for step in steps[:width]) / rows  # tokens of a row
            first = self._drafter.unread * unread + (self._drafter.start if begins else 0.0)
            block = best.cost - self._drafter.unread * (unread - each * rows)
            if first + max(1.0, left / each + 0.5) * block > left * (self._free_rows + rows) / _LEAST_GAIN:
                return _Choice(0, float(self._free_rows + rows), best.full_cost, unread)
        if packs and width > 0:  # how far each kind of draft is worth it is seen when they are there
            width = longest
        return _Choice(width, best.cost, best.full_cost, unread)

    def _steps(
        self, rows: int, having: Mapping[int, Sequence[float]], packs: bool, drafted: float = 0.0
    ) -> list[_Step]:
        """Drafts, token by token, in the order in which they are worth it.

        Args:
            rows: B.
            having: by kind, rows whose drafts have a first token, a second, ...
            packs: see `cut`.
            drafted: what each token of drafts that are still to be made costs.
        """
        steps = [
            (passes, number, place, kind)
            for kind, numbers in having.items()
            for place, (passes, number) in enumerate(
                zip(self._record.chances(kind, len(numbers)), numbers, strict=True)
            )
        ]
        if packs:
            steps.sort(key=lambda step: -step[0])  # each kind's own stay in their order
            return [_Step(passes * number, number, kind) for passes, number, _, kind in steps]
        gains = [0.0] * max(map(len, having.values()), default=0)
        for passes, number, place, _ in steps:
            gains[place] += passes * number
        return [_Step(gain, rows * (1 + drafted), 0) for gain in gains]

    def _best(self, rows: int, steps: Sequence[_Step], once: float, least_gain: float = 1.0) -> _Best:
        """How many steps to go.

        Args:
            rows: B.
            steps: in their order.
            once: what the first step costs beside its own cost.
            least_gain: how many times the tokens of no draft a draft has to promise.
        """
        cost = best_cost = float(self._free_rows + rows)
        best, best_rate, tokens = 0, least_gain * rows / cost, float(rows)  # `tokens`: committed in all
        cost += once
        for number, step in enumerate(steps, start=1):
            tokens += step.gain
            cost += step.cost
            if tokens / cost > best_rate:
                best, best_rate, best_cost = number, tokens / cost, cost
        return _Best(best, best_cost, cost)


def _alike(kinds: Sequence[int] | None, rows: int) -> list[int]:
    return [0] * rows if kinds is None else [min(kind, _ALIKE) for kind in kinds]
