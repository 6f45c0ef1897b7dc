"""The data that drafter, verifier and loop exchange.

Block: the input of one pass of the verifier, each row's last committed token and its draft. Ragged: rows of different
widths, stored without padding. The verifier's result comes back on the host, in `Chosen`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.stats import SentenceStats

MODEL_DRAFT = -1
"""kind of a draft by a block drafter or by proposal heads"""
NO_DRAFT = -1
"""stands for a draft token where there is none; never passes"""
HOST = torch.device("cpu")


def flat(parts: Iterable[list[Any]], kind: Literal["q", "f"] = "q") -> Tensor:
    """The values of all parts on the host, one after the other, in int64 (`q`) or fp32 (`f`).

    torch.tensor takes three times as long.
    """
    values = array(kind)
    for part in parts:
        values.fromlist(part)
    dtype = torch.long if kind == "q" else torch.float
    return (
        torch.frombuffer(values, dtype=dtype) if values else torch.empty(0, dtype=dtype)
    )


def padded(rows: Sequence[Sequence[int]], fill: int, length: int = 0) -> Tensor:
    """Tokens on the host, B x L, each row filled up at its end; `length`: L, if it is above the longest row's."""
    length = max(length, *map(len, rows))
    whole = flat([*row, *[fill] * (length - len(row))] for row in rows)
    return whole.view(len(rows), length)


@dataclass(frozen=True)
class RowSelection:
    """The rows that stay in a batch, in their new order: the last ones take the places of those that leave."""

    rows: Sequence[int]
    device: torch.device
    """the verifier's"""

    @cached_property
    def tensor(self) -> Tensor:
        """`rows` on the device."""
        return flat([list(self.rows)]).to(self.device, non_blocking=True)

    @cached_property
    def moves(self) -> tuple[list[int], list[int]]:
        """The places that get another row, and these rows, M each."""
        places = [place for place, row in enumerate(self.rows) if place != row]
        return places, [self.rows[place] for place in places]

    @cached_property
    def moved(self) -> Tensor:
        """`moves` on the device, 2 x M."""
        return flat(self.moves).view(2, -1).to(self.device, non_blocking=True)


@dataclass(frozen=True)
class Draft:
    """The proposed tokens of each row."""

    tokens: Tensor
    """B x K, on the host or on the verifier's device; entries after a row's draft are undefined"""
    lengths: list[int] | None
    """length of each row's draft; None while it is only known on the GPU, see `on_device`"""
    kinds: Sequence[int] = field(default=(), kw_only=True)
    """kind of each row's draft, by which acceptance rates are counted. Of a copy: see `SourceMatcher.copy`. Of a model:
    `MODEL_DRAFT`. Empty: a model made all drafts"""
    limits: Sequence[int] = field(default=(), kw_only=True)
    """where `lengths` is None: the longest draft of each row"""
    eos: int = field(default=NO_DRAFT, kw_only=True)
    """where `lengths` is None: a draft ends with this token"""

    @classmethod
    def of_known(
        cls, tokens: Tensor, lengths: list[int], kinds: Sequence[int] = ()
    ) -> Draft:
        """A draft with lengths known to the host."""
        return cls(tokens[:, : max(lengths)], lengths, kinds=kinds)

    @classmethod
    def up_to_end(cls, tokens: Tensor, eos: int) -> Draft:
        """A draft of B x K tokens, K at least 1, each row cut after its first EOS."""
        return cls(tokens, [_up_to(eos, row) for row in tokens.tolist()])

    @classmethod
    def on_device(cls, tokens: Tensor, eos: int) -> Draft:
        """`up_to_end`, without synchronising: the lengths come back with the verifier's choices."""
        rows, width = tokens.shape
        return cls(tokens, None, limits=[width] * rows, eos=eos)

    @classmethod
    def whole(cls, tokens: Tensor) -> Draft:
        """A draft of all B x K tokens."""
        rows, width = tokens.shape
        return cls(tokens, [width] * rows)

    @staticmethod
    @lru_cache(maxsize=256)
    def none(rows: int) -> Draft:
        """No draft for any row."""
        return Draft(torch.empty(rows, 0, dtype=torch.long), [0] * rows)

    def after(self, tokens: Sequence[Sequence[int]]) -> Draft:
        """The draft with these tokens before it, B x P."""
        first = (
            flat(map(list, tokens))
            .view(len(tokens), -1)
            .to(self.tokens.device, non_blocking=True)
        )
        lengths = (
            None
            if self.lengths is None
            else [first.size(1) + length for length in self.lengths]
        )
        limits = [first.size(1) + limit for limit in self.limits]
        return replace(
            self,
            tokens=torch.cat([first, self.tokens], dim=1),
            lengths=lengths,
            limits=limits,
        )

    def lengths_of(self, read: Sequence[Sequence[int]]) -> list[int]:
        """The length of each row's draft; `read`: the draft's tokens on the host, B x K."""
        if self.lengths is not None:
            return self.lengths
        return [
            min(limit, _up_to(self.eos, row))
            for limit, row in zip(self.limits, read, strict=True)
        ]

    def cut(self, limits: Sequence[int]) -> Draft:
        """The draft with no row longer than its limit."""
        if self.lengths is None:
            lower = list(map(min, self.limits, limits))
            return replace(self, tokens=self.tokens[:, : max(lower)], limits=lower)
        lengths = [
            min(length, limit)
            for length, limit in zip(self.lengths, limits, strict=True)
        ]
        if lengths == self.lengths and self.tokens.size(1) == max(lengths):
            return self
        return Draft.of_known(self.tokens, lengths, self.kinds)


def _up_to(eos: int, row: Sequence[int]) -> int:
    """How many tokens there are up to the first EOS, which counts."""
    return row.index(eos) + 1 if eos in row else len(row)


@dataclass(frozen=True)
class Ragged:
    """The valid entries of a B x W matrix: the first entries of each row, at least one.

    A matrix of tokens is as wide as its widest row. If only some rows have long drafts, most of it is padding,
    and in large batches padding costs as much as tokens.
    """

    widths: Sequence[int]
    """valid entries of each row"""
    width: int
    """W"""
    device: torch.device
    """the device of `rows` and `columns`"""
    is_full: bool
    """whether all B W entries are valid"""

    @staticmethod
    def of(widths: Sequence[int], device: torch.device) -> Ragged:
        """Rows with this many entries each."""
        width = max(widths)
        if min(widths) == width:
            return Ragged.full(len(widths), width, device)
        return Ragged(widths, width, device, False)

    @staticmethod
    @lru_cache(maxsize=256)
    def full(rows: int, width: int, device: torch.device) -> Ragged:
        """All entries of a matrix."""
        return Ragged([width] * rows, width, device, True)

    @cached_property
    def rows(self) -> Tensor:
        """N, the row of each entry, row by row"""
        return flat([row] * wide for row, wide in enumerate(self.widths)).to(
            self.device, non_blocking=True
        )

    @cached_property
    def columns(self) -> Tensor:
        """N, the column of each entry"""
        return flat(map(list, map(range, self.widths))).to(
            self.device, non_blocking=True
        )

    @cached_property
    def _entries(self) -> Tensor:
        """N, the index of each entry in the flattened matrix."""
        return self.rows * self.width + self.columns

    @cached_property
    def _nearest(self) -> Tensor:
        """B W, the index of the entry at each place of the matrix; after a row's end that of its last entry."""
        widths = flat([list(self.widths)]).to(self.device, non_blocking=True)[:, None]
        last = widths.cumsum(0) - 1
        columns = torch.arange(self.width, device=self.device)
        return (last + 1 - widths + columns).minimum(last).flatten()

    @property
    def size(self) -> int:
        """N"""
        return sum(self.widths)

    def pack(self, x: Tensor) -> Tensor:
        """B x W x ... -> N x ..."""
        return (
            x.flatten(0, 1)
            if self.is_full
            else x.flatten(0, 1).index_select(0, self._entries)
        )

    def spread(self, x: Tensor) -> Tensor:
        """N x ... -> B x W x ..., each row's last entry repeated after it."""
        return (x if self.is_full else x.index_select(0, self._nearest)).unflatten(
            0, (-1, self.width)
        )


@dataclass(frozen=True)
class Block:
    """The input of one pass of the verifier: each row's last committed token, then its draft."""

    lasts: Sequence[int]
    """B, each row's last committed token"""
    known_starts: Sequence[int]
    """B, the position of each row's last committed token, the first of its block"""
    draft: Tensor
    """B x K, on the host or on the verifier's device"""
    ragged: Ragged
    """the N entries of `tokens` that are read"""

    @classmethod
    def of(
        cls,
        tokens: Tensor,
        known_starts: Sequence[int],
        widths: Sequence[int] | None = None,
    ) -> Block:
        """A block of B x W tokens on the verifier's device; `widths`: how many are read in each row, None for all."""
        lasts = tokens[:, 0].tolist()
        return cls.of_draft(lasts, known_starts, tokens[:, 1:], widths, tokens.device)

    @classmethod
    def of_draft(
        cls,
        lasts: Sequence[int],
        known_starts: Sequence[int],
        draft: Tensor,
        widths: Sequence[int] | None,
        device: torch.device,
    ) -> Block:
        """A block of these tokens; `widths` as in `of`; `device`: the verifier's."""
        ragged = (
            Ragged.full(len(lasts), 1 + draft.size(1), device)
            if widths is None
            else Ragged.of(widths, device)
        )
        return cls(lasts, known_starts, draft, ragged)

    @property
    def first_start(self) -> int:
        """The least of `known_starts`."""
        return min(self.known_starts)

    @property
    def last_start(self) -> int:
        """The largest of `known_starts`."""
        return max(self.known_starts)

    @cached_property
    def _numbers(self) -> tuple[Tensor, ...]:
        """`known_starts` and `lasts` on the device, B each."""
        values = flat([list(self.known_starts), list(self.lasts)]).view(2, -1)
        return values.to(self.ragged.device, non_blocking=True).unbind()

    @property
    def starts(self) -> Tensor:
        """B, `known_starts` on the device."""
        return self._numbers[0]

    @cached_property
    def tokens(self) -> Tensor:
        """B x W, W = K + 1, on the device; entries that `ragged` leaves out are undefined."""
        lasts = self._numbers[1][:, None]
        if self.draft.size(1) == 0:
            return lasts
        return torch.cat([lasts, self.draft.to(lasts.device, non_blocking=True)], dim=1)

    @property
    def proposed(self) -> Tensor:
        """The next token of the same row after each token, N; `NO_DRAFT` at a row's end."""
        read = self.ragged.pack(self.tokens)
        rows = self.ragged.rows
        is_last = F.pad(rows[1:], (0, 1), value=-1) != rows
        return F.pad(read[1:], (0, 1)).masked_fill(is_last, NO_DRAFT)

    def sequence(self, texts: Sequence[Sequence[int]], pad: int) -> Tensor:
        """The decoder's inputs up to the end of the block, B x L, padded after a shorter row's block.

        `texts`: the tokens of each row up to `lasts`.
        """
        width = self.ragged.width
        tokens = self.tokens
        length = self.last_start + width
        inputs = padded(texts, pad, length).to(tokens.device, non_blocking=True)
        return inputs.scatter(
            1, self.starts[:, None] + torch.arange(width, device=tokens.device), tokens
        )

    @cached_property
    def positions(self) -> Tensor:
        """The position of each token, N."""
        ragged = self.ragged
        if ragged.width == 1:
            return self.starts
        if ragged.is_full:
            return (self.starts[:, None] + ragged.columns[: ragged.width]).flatten()
        return self.starts[ragged.rows] + ragged.columns


class Chosen(NamedTuple):
    """A verifier's choice after each of a block's N tokens, under the search rules; all on the host."""

    read: Tensor
    """N, the block's tokens"""
    tokens: Tensor
    """N, the best allowed token after each"""
    log_probs: Tensor
    """N, fp32, of `tokens`"""
    drafted: Tensor | None = None
    """N, fp32: the log-probability of the next token of the same row's block, minus infinity where a rule bans it
    or forces another; undefined at a row's end. None where drafts are judged by `tokens` alone"""
    ranks: Tensor | None = None
    """N: how many tokens have a higher score than `drafted`, counted up to what was asked for"""


@dataclass
class Decoded:
    """One finished sentence."""

    tokens: list[int]
    """the output, EOS included"""
    log_probs: list[float]
    """log-probability of each output token, in single precision"""
    stats: SentenceStats
    drafts: list[Tensor] | None = None
    """the draft of every iteration; None where drafts are not kept"""
    score: float | None = None
    """of a beam search: the sort key of its n-best list; None: it follows from `log_probs`"""


@dataclass(frozen=True)
class Outcome:
    """The result of an iteration: token counts of each row."""

    drafted: list[int]
    accepted: list[int]
    committed: list[int]
    remaining: RowSelection | None
    """the rows that stay active; None: all"""
