"""The words of the loop: who drafts, who verifies, who decides how much, and what they hand to each other.

Drafter: proposes draft tokens, what the verifier will probably say next. Verifier: the model whose own greedy output is
wanted. Draft schedule: decides how many draft tokens are worth verifying. Block: what one pass of the verifier reads,
each row's last committed token and its draft. Ragged: rows of different widths, without what would pad them to a
matrix. Bifurcation: the first draft token that does not pass; the verifier's own token is committed there. Bonus token:
the verifier's own token behind a draft that passed whole.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.stats import SentenceStats

if TYPE_CHECKING:
    from fairseq_aggdec.decoding.outputs import Outputs


BY_A_MODEL = -1
"""the kind of a draft by a block drafter or proposal heads"""


@dataclass(frozen=True)
class Draft:
    """What is proposed for each row."""

    tokens: Tensor
    """B x K; junk behind `lengths`"""
    known: list[int] | None
    """`lengths`; None where the host would have to wait for the device"""
    kinds: Sequence[int] = field(default=(), kw_only=True)
    """of each row's draft; drafts of one kind are about equally good. Of a copy: the length of the output's suffix that
    was found in the source, 0 for the start symbol alone; of a model `BY_A_MODEL`. Empty: all are by a model"""
    unknown: Tensor | None = field(default=None, kw_only=True)
    """`lengths`, where the host does not know them"""

    @cached_property
    def lengths(self) -> Tensor:
        """B, 0 for no draft."""
        if self.unknown is not None:
            return self.unknown
        return torch.tensor(self.known, dtype=torch.long, device=self.tokens.device)

    @classmethod
    def of_known(cls, tokens: Tensor, known: list[int], kinds: Sequence[int] = ()) -> Draft:
        """A draft whose lengths the host knows."""
        return cls(tokens[:, : max(known)], known, kinds=kinds)

    @classmethod
    def up_to_end(cls, tokens: Tensor, eos: int) -> Draft:
        """A draft in which B x K tokens count, K at least 1, but for those behind a row's first EOS."""
        if tokens.device.type != "cpu":  # without waiting for the device
            return cls(tokens, None, unknown=1 + (tokens[:, :-1] != eos).long().cumprod(dim=1).sum(dim=1))
        return cls(tokens, [row.index(eos) + 1 if eos in row else len(row) for row in tokens.tolist()])

    @classmethod
    def whole(cls, tokens: Tensor) -> Draft:
        """A draft in which all of B x K tokens count."""
        rows, width = tokens.shape
        return cls(tokens, [width] * rows)

    @classmethod
    def none(cls, rows: int, device: torch.device) -> Draft:
        """No draft for any row."""
        return cls(torch.empty(rows, 0, dtype=torch.long, device=device), [0] * rows)

    def cut(self, longest: Sequence[int]) -> Draft:
        """The same, no row's draft longer than `longest` says."""
        if self.known is None:
            if min(longest) >= self.tokens.size(1):
                return self
            limits = torch.tensor(longest, device=self.lengths.device)
            unknown = torch.minimum(self.lengths, limits)
            return Draft(self.tokens[:, : max(longest)], None, kinds=self.kinds, unknown=unknown)
        known = [min(length, limit) for length, limit in zip(self.known, longest, strict=True)]
        if known == self.known and self.tokens.size(1) == max(known):
            return self
        return Draft.of_known(self.tokens, known, self.kinds)


@dataclass(frozen=True)
class Ragged:
    """Which entries of a B x W matrix count: the first few of each row, at least one.

    A matrix of tokens is as wide as its widest row. Where a few rows have long drafts and the others none, most of it
    is padding, and where arithmetic binds padding costs as much as tokens.
    """

    widths: Sequence[int]
    """how many entries each row has"""
    width: int
    """W"""
    rows: Tensor
    """N, the row of each entry, row by row"""
    columns: Tensor
    """N, its column"""
    is_full: bool
    """whether all B W entries count"""

    @staticmethod
    def of(widths: Sequence[int], device: torch.device) -> Ragged:
        """Rows of so many entries."""
        width = max(widths)
        if min(widths) == width:
            return Ragged.full(len(widths), width, device)
        numbers = array("q")
        for row, wide in enumerate(widths):
            numbers.extend([row] * wide)
        for wide in widths:
            numbers.extend(range(wide))
        rows, columns = torch.frombuffer(numbers, dtype=torch.long).view(2, -1).to(device)
        return Ragged(widths, width, rows, columns, False)

    @staticmethod
    @lru_cache(maxsize=256)
    def full(rows: int, width: int, device: torch.device) -> Ragged:
        """Every entry counts."""
        columns = torch.arange(width, device=device)
        numbers = torch.arange(rows, device=device)
        ordered = numbers.repeat_interleave(width, output_size=rows * width)
        return Ragged([width] * rows, width, ordered, columns.repeat(rows), True)

    @cached_property
    def _entries(self) -> Tensor:
        """N, where in the matrix each stands, row by row."""
        return self.rows * self.width + self.columns

    @cached_property
    def _nearest(self) -> Tensor:
        """B W: of each place of the matrix the entry, by number of N, that is there; the row's last one behind it."""
        widths = torch.tensor(self.widths, device=self.rows.device)[:, None]
        last = widths.cumsum(0) - 1
        columns = torch.arange(self.width, device=self.rows.device)
        return (last + 1 - widths + columns).minimum(last).flatten()

    @property
    def size(self) -> int:
        """N"""
        return self.rows.size(0)

    def pack(self, x: Tensor) -> Tensor:
        """B x W x ... -> N x ..."""
        return x.flatten(0, 1) if self.is_full else x.flatten(0, 1).index_select(0, self._entries)

    def spread(self, x: Tensor) -> Tensor:
        """N x ... -> B x W x ..., each row's last entry repeated behind it."""
        return (x if self.is_full else x.index_select(0, self._nearest)).unflatten(0, (-1, self.width))


@dataclass(frozen=True)
class Block:
    """What one pass of the verifier reads: each row's last committed token, then its draft."""

    tokens: Tensor
    """B x W, W = K + 1; junk behind a row's tokens"""
    starts: Tensor
    """B, the position of each row's first block token"""
    first_start: int
    last_start: int
    """the least and the largest entry of `starts`, as the host knows them"""
    ragged: Ragged
    """which entries of `tokens` are read: N in all, row by row"""

    @classmethod
    def of(cls, tokens: Tensor, starts: Tensor, known_starts: Sequence[int], widths: Sequence[int] | None) -> Block:
        """The host knows the `starts`; of each row's tokens as many are read as `widths` says, None for all."""
        if widths is None:
            ragged = Ragged.full(tokens.size(0), tokens.size(1), tokens.device)
        else:
            ragged = Ragged.of(widths, tokens.device)
        return cls(tokens, starts, min(known_starts), max(known_starts), ragged)

    @cached_property
    def positions(self) -> Tensor:
        """N, at which the tokens are read."""
        ragged = self.ragged
        if ragged.width == 1:
            return self.starts
        if ragged.is_full:
            return (self.starts[:, None] + ragged.columns[: ragged.width]).flatten()
        return self.starts[ragged.rows] + ragged.columns


@dataclass
class Decoded:
    """One finished sentence."""

    tokens: Tensor
    """output, L, EOS included"""
    log_probs: Tensor
    """log-probability of each output token, L, fp32"""
    stats: SentenceStats
    drafts: list[Tensor] | None = None
    """the draft of every iteration, where they are kept"""


@dataclass(frozen=True)
class Outcome:
    """What an iteration has brought, a number of tokens for each of its rows."""

    drafted: list[int]
    accepted: list[int]
    committed: list[int]
    remaining: Tensor | None
    """the rows that go on, in their new order; None: all of them do"""


class Drafter(Protocol):
    """Proposes what the verifier will probably say next."""

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """Draft a continuation of every row.

        Args:
            outputs: so far.
            longest: how many tokens of each row's draft are wanted at most, not all of them 0; longer drafts are cut.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class Verifier(Protocol):
    """The model whose greedy output is wanted."""

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block behind what each row has committed; what was cached from `starts` on is overwritten.

        Returns:
            what follows each of the block's N tokens, piece by piece, since all scores may be more than the caches
            hold: n x V logits or log-probabilities, the temperature applied, of the first n tokens; then of the next.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class DraftSchedule(Protocol):
    """Decides how much of a batch's drafts is verified. A lossless output does not depend on it."""

    def longest(self, outputs: Outputs) -> list[int]:
        """How long each row's next draft may be, before it is made; 0 for no draft, `sys.maxsize` for any length."""

    def trim(self, draft: Draft) -> Draft:
        """What is worth verifying of drafts that are there."""

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        """Take in what became of a draft."""


class VerifyAll(DraftSchedule):
    """The papers' behaviour: every draft token is verified."""

    def longest(self, outputs: Outputs) -> list[int]:
        return [sys.maxsize] * len(outputs.rows)

    def trim(self, draft: Draft) -> Draft:
        return draft

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        return None


VERIFY_ALL = VerifyAll()
