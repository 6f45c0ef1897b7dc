"""The roles of the decoding loop, and the data that they exchange.

Drafter: proposes draft tokens, a guess at the verifier's next tokens. Verifier: the model that is decoded; its own
greedy output is the reference. Draft schedule: decides how many draft tokens are worth verifying. Block: the input of
one pass of the verifier, each row's last committed token and its draft. Ragged: rows of different widths, stored
without padding. Bifurcation: the first draft token that does not pass; the verifier's own token is committed there.
Bonus token: the verifier's own token behind a draft that passed as a whole.
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
"""kind of a draft by a block drafter or by proposal heads"""


@dataclass(frozen=True)
class Draft:
    """The proposed tokens of each row."""

    tokens: Tensor
    """B x K; entries behind `lengths` are undefined"""
    known: list[int] | None
    """`lengths` on the host; None where the host would have to wait for the device"""
    kinds: Sequence[int] = field(default=(), kw_only=True)
    """kind of each row's draft, by which acceptance rates are counted. Of a copy: the length of the output's suffix
    found in the source, 0 for the start symbol alone. Of a model: `BY_A_MODEL`. Empty: a model made all drafts"""
    unknown: Tensor | None = field(default=None, kw_only=True)
    """`lengths` on the device, where `known` is None"""

    @cached_property
    def lengths(self) -> Tensor:
        """The length of each row's draft, B; 0: no draft."""
        if self.unknown is not None:
            return self.unknown
        return torch.tensor(self.known, dtype=torch.long, device=self.tokens.device)

    @classmethod
    def of_known(cls, tokens: Tensor, known: list[int], kinds: Sequence[int] = ()) -> Draft:
        """A draft with lengths known to the host."""
        return cls(tokens[:, : max(known)], known, kinds=kinds)

    @classmethod
    def up_to_end(cls, tokens: Tensor, eos: int) -> Draft:
        """A draft of B x K tokens, K at least 1, each row cut behind its first EOS."""
        if tokens.device.type != "cpu":  # without waiting for the device
            return cls(tokens, None, unknown=1 + (tokens[:, :-1] != eos).long().cumprod(dim=1).sum(dim=1))
        return cls(tokens, [row.index(eos) + 1 if eos in row else len(row) for row in tokens.tolist()])

    @classmethod
    def whole(cls, tokens: Tensor) -> Draft:
        """A draft of all B x K tokens."""
        rows, width = tokens.shape
        return cls(tokens, [width] * rows)

    @classmethod
    def none(cls, rows: int, device: torch.device) -> Draft:
        """No draft for any row."""
        return cls(torch.empty(rows, 0, dtype=torch.long, device=device), [0] * rows)

    def cut(self, limits: Sequence[int]) -> Draft:
        """The draft with no row longer than its limit."""
        if self.known is None:
            if min(limits) >= self.tokens.size(1):
                return self
            unknown = torch.minimum(self.lengths, torch.tensor(limits, device=self.lengths.device))
            return Draft(self.tokens[:, : max(limits)], None, kinds=self.kinds, unknown=unknown)
        known = [min(length, limit) for length, limit in zip(self.known, limits, strict=True)]
        if known == self.known and self.tokens.size(1) == max(known):
            return self
        return Draft.of_known(self.tokens, known, self.kinds)


@dataclass(frozen=True)
class Ragged:
    """The valid entries of a B x W matrix: the first entries of each row, at least one.

    A matrix of tokens is as wide as its widest row. Where a few rows have long drafts and the others none, most of it
    is padding, and in large batches padding costs as much as tokens.
    """

    widths: Sequence[int]
    """number of valid entries of each row"""
    width: int
    """W"""
    rows: Tensor
    """N, the row of each entry, row by row"""
    columns: Tensor
    """N, the column of each entry"""
    is_full: bool
    """whether all B W entries are valid"""

    @staticmethod
    def of(widths: Sequence[int], device: torch.device) -> Ragged:
        """Rows with these numbers of entries."""
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
        """All entries of a matrix."""
        columns = torch.arange(width, device=device)
        numbers = torch.arange(rows, device=device)
        ordered = numbers.repeat_interleave(width, output_size=rows * width)
        return Ragged([width] * rows, width, ordered, columns.repeat(rows), True)

    @cached_property
    def _entries(self) -> Tensor:
        """N, the index of each entry in the flattened matrix."""
        return self.rows * self.width + self.columns

    @cached_property
    def _nearest(self) -> Tensor:
        """B W, the number of the entry at each place of the matrix; behind a row's end that of its last entry."""
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
    """The input of one pass of the verifier: each row's last committed token, then its draft."""

    tokens: Tensor
    """B x W, W = K + 1; entries that `ragged` leaves out are undefined"""
    starts: Tensor
    """B, the position of each row's first block token"""
    first_start: int
    last_start: int
    """the least and the largest entry of `starts`, on the host"""
    ragged: Ragged
    """the N entries of `tokens` that are read"""

    @classmethod
    def of(cls, tokens: Tensor, starts: Tensor, known_starts: Sequence[int], widths: Sequence[int] | None) -> Block:
        """A block with `starts` known to the host; `widths`: the number of tokens read in each row, None for all."""
        if widths is None:
            ragged = Ragged.full(tokens.size(0), tokens.size(1), tokens.device)
        else:
            ragged = Ragged.of(widths, tokens.device)
        return cls(tokens, starts, min(known_starts), max(known_starts), ragged)

    @cached_property
    def positions(self) -> Tensor:
        """The position of each token, N."""
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
    """the output, L, EOS included"""
    log_probs: Tensor
    """log-probability of each output token, L, fp32"""
    stats: SentenceStats
    drafts: list[Tensor] | None = None
    """the draft of every iteration; None where drafts are not kept"""


@dataclass(frozen=True)
class Outcome:
    """The result of an iteration: numbers of tokens for each row."""

    drafted: list[int]
    accepted: list[int]
    committed: list[int]
    remaining: Tensor | None
    """the rows that go on, in their new order; None: all rows go on"""


class Drafter(Protocol):
    """Guesses the verifier's next tokens."""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        """Draft a continuation of every row.

        Args:
            outputs: the outputs so far.
            limits: the longest draft wanted for each row, not all 0; the loop cuts longer drafts.
        """

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""


class Verifier(Protocol):
    """The model that is decoded."""

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block behind each row's committed tokens, and overwrite the cache from `starts` on.

        Returns:
            the scores of the token after each of the block's N tokens, in chunks of n x V: logits or
            log-probabilities, divided by the temperature.
        """

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""


class DraftSchedule(Protocol):
    """Decides how many draft tokens of a batch are verified. A lossless output does not depend on it."""

    def limits(self, outputs: Outputs) -> list[int]:
        """The longest draft to make for each row; 0 for no draft, `sys.maxsize` for any length."""

    def trim(self, draft: Draft) -> Draft:
        """Cut a draft to the tokens that are worth verifying."""

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        """Learn from the outcome of a draft."""


class VerifyAll(DraftSchedule):
    """The papers' behaviour: every draft token is verified."""

    def limits(self, outputs: Outputs) -> list[int]:
        return [sys.maxsize] * len(outputs.rows)

    def trim(self, draft: Draft) -> Draft:
        return draft

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        return None


VERIFY_ALL = VerifyAll()
