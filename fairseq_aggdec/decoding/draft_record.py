"""What has been learnt of drafts and batches, to judge whether further drafts are worth it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_MEMORY = 200
"""drafts after which older ones count half"""
_PRIOR = 4.0
"""how many tries of a position its neighbour's share of passes counts for"""
_POSITIONS = 16
"""of a draft, that are told apart; those behind are taken to be like the last"""

_NEWS = 0.2
"""the share of the last batch in a mean over batches"""
_UNKNOWN = 20.0
"""tokens that are taken to be left before any batch was seen"""


@dataclass
class _Kind:
    tried: list[float] = field(default_factory=lambda: [0.0] * _POSITIONS)
    passed: list[float] = field(default_factory=lambda: [0.0] * _POSITIONS)
    drafts: float = 0.0  # seen
    tokens: float = 0.0  # of these
    chances: list[float] | None = None  # as far as they were asked for since something was learnt


class DraftRecord:
    """Learns the probability that a token passes where those before it did, for each position of a draft by itself.

    Blocks get worse towards their end, and copies better.
    """

    def __init__(self, acceptance: float) -> None:
        """
        Args:
            acceptance: the probability to begin with.
        """
        self._acceptance = acceptance
        self._kinds: dict[int, _Kind] = {}
        self._rows = 0.0  # that were asked for a draft

    def chances(self, kind: int, length: int) -> list[float]:
        """The probability that a draft's first token passes, its first two, ..."""
        record = self._kinds.get(kind)
        if record is not None and record.chances is not None and len(record.chances) >= length:
            return record.chances[:length]
        chances, all_pass, passes = [], 1.0, self._acceptance
        for place in range(length):
            if record is not None and place < _POSITIONS:
                passes = (record.passed[place] + _PRIOR * passes) / (record.tried[place] + _PRIOR)
            all_pass *= passes
            chances.append(all_pass)
        if record is not None:
            record.chances = chances
        return chances

    def expected(self, rows: int, longest: int) -> dict[int, Sequence[float]]:
        """By kind, how many of so many rows will have a draft with a first token, a second, ... up to the longest."""
        if self._rows == 0:
            return {0: [float(rows)] * longest}
        return {
            kind: [rows * record.drafts / self._rows] * min(longest, round(record.tokens / record.drafts))
            for kind, record in self._kinds.items()
            if record.drafts > 0
        }

    def see(self, lengths: Sequence[int], kinds: Sequence[int]) -> None:
        """Take in how long each row's draft is; 0 for none."""
        for length, kind in zip(lengths, kinds, strict=True):
            if length > 0:
                record = self._of(kind)
                record.drafts += 1
                record.tokens += length
        self._rows += len(lengths)
        if self._rows > _MEMORY:
            self._rows /= 2
            for record in self._kinds.values():
                record.drafts, record.tokens = record.drafts / 2, record.tokens / 2

    def learn(self, drafted: Sequence[int], accepted: Sequence[int], kinds: Sequence[int]) -> None:
        """Take in how many tokens of each row's draft passed."""
        for length, passed, kind in zip(drafted, accepted, kinds, strict=True):
            if length == 0:
                continue
            record = self._of(kind)
            record.chances = None
            for place in range(min(passed, _POSITIONS)):
                record.passed[place] += 1
            for place in range(min(passed + 1, length, _POSITIONS)):
                record.tried[place] += 1
            if record.tried[0] > _MEMORY:
                record.tried = [count / 2 for count in record.tried]
                record.passed = [count / 2 for count in record.passed]

    def _of(self, kind: int) -> _Kind:
        return self._kinds.setdefault(kind, _Kind())


class TailRecord:
    """How many tokens a batch still takes when so many of its rows are left.

    Sentences of similar length share a batch: once others have ended, the last ones seldom go on for long.
    """

    def __init__(self) -> None:
        self._left: dict[int, float] = {}  # by rows, a running mean
        self._first: dict[int, int] = {}  # of this batch, by rows, where the longest row was
        self._last = 0

    def see(self, rows: int, position: int) -> None:
        """Take in how many rows there are where the longest one has so many tokens; 1 begins a batch."""
        if position <= 1:
            for number, first in self._first.items():
                left = self._last + 1 - first
                before = self._left.get(number, float(left))
                self._left[number] = before + _NEWS * (left - before)
            self._first.clear()
        self._first.setdefault(rows, position)
        self._last = position

    def left(self, rows: int) -> float:
        """Tokens until the last row ends, from where there are first no more than so many."""
        if rows in self._left:
            return self._left[rows]
        nearest = min(self._left, key=lambda number: abs(number - rows), default=None)
        return _UNKNOWN if nearest is None else self._left[nearest]
