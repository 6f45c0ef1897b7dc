"""The search rules: which token may win. Each is a class; `SearchRules` has a batch's options, and lists its rules.

They follow `fairseq.sequence_generator.SequenceGenerator._generate`. To add one: a class, its place in `further`, and a
field of `SearchRules` where it has an option. It then holds in all modes, since no fast way takes a rule of `further`.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import RowSelection

_ANY = -1
"""stands for a token where none is forced"""


class Places(NamedTuple):
    """N places in outputs, at each of which the next token is chosen."""

    positions: Tensor
    """N"""
    first: int
    last: int
    """bounds of the positions, on the host"""
    sequence: Tensor | None = None
    """the decoder's inputs up to each place at least, N x L: the start symbol, then the output. None where no rule of
    the batch `reads_output`"""


class Rule:
    """Changes the scores of the next token."""

    reads_output = False
    """whether `Places.sequence` is needed"""

    def apply(self, scores: Tensor, at: Places) -> None:
        """Change log-probabilities in place, N x V; minus infinity bans a token."""
        raise NotImplementedError


class Bans(NamedTuple):
    """Padding is never chosen, and EOS not before the least length: two bans that every way to choose has built in."""

    pad: int
    eos: int = -1
    early: Tensor | None = None
    """where EOS is banned, N booleans; None: nowhere"""

    def apply(self, scores: Tensor, rows: int | slice = slice(None)) -> Tensor:
        """Ban the tokens in place, in the scores of these rows: V of one row, n x V of several."""
        scores[..., self.pad] = -math.inf
        if self.early is not None:
            scores[..., self.eos].masked_fill_(self.early[rows], -math.inf)
        return scores


@dataclass(frozen=True)
class LongestOutput(Rule):
    """At the longest length nothing but EOS is possible."""

    eos: int
    max_len: int

    def apply(self, scores: Tensor, at: Places) -> None:
        _leave(scores, torch.where(at.positions >= self.max_len, self.eos, _ANY))


@dataclass(frozen=True)
class ForcedPrefix(Rule):
    """An output begins with its prefix, if it has one."""

    prefix: Tensor
    """N x P, padded with `pad`"""
    pad: int
    steps: int
    """at most P"""

    def apply(self, scores: Tensor, at: Places) -> None:
        columns = at.positions.clamp(max=self.prefix.size(1) - 1)
        tokens = self.prefix.gather(1, columns[:, None]).squeeze(1)
        is_forced = (at.positions < self.steps) & (tokens != self.pad)
        _leave(scores, torch.where(is_forced, tokens, _ANY))


def _leave(scores: Tensor, tokens: Tensor) -> None:
    """Ban all but one token in each row, N, in place; none where it is `_ANY`."""
    columns = tokens.clamp(min=0)[:, None]
    kept = scores.gather(1, columns)
    scores.masked_fill_(tokens[:, None] != _ANY, -math.inf)
    scores.scatter_(1, columns, kept)


@dataclass(frozen=True)
class UnknownPenalty(Rule):
    """Unknown words lose some of their log-probability."""

    unk: int
    penalty: float

    def apply(self, scores: Tensor, at: Places) -> None:
        scores[:, self.unk] -= self.penalty


@dataclass(frozen=True)
class Suppressed(Rule):
    """Some tokens are chosen by a forced prefix alone."""

    tokens: tuple[int, ...]
    first: int
    """the first position without a forced token"""
    max_len: int

    def apply(self, scores: Tensor, at: Places) -> None:
        holds = (at.positions >= self.first) & (at.positions < self.max_len)
        for token in self.tokens:
            scores[:, token].masked_fill_(holds, -math.inf)


@dataclass(frozen=True)
class RepeatedNgrams(Rule):
    """No n-gram of an output, the start symbol included, occurs twice."""

    size: int
    """n, at least 2"""
    reads_output = True

    def apply(self, scores: Tensor, at: Places) -> None:
        assert at.sequence is not None
        sequence = at.sequence
        positions = at.positions[:, None]
        context = self.size - 1
        if sequence.size(1) <= context:
            return

        # N x G: each place that ends an n-gram, and N x G x (n-1): what stands before it
        ends = torch.arange(context, sequence.size(1), device=sequence.device)
        before = sequence.unfold(1, context, 1)[:, :-1]

        # N x (n-1): what stands before the next token, and N x G: whether it has stood before an earlier one
        recent = positions + torch.arange(1 - context, 1, device=sequence.device)
        current = sequence.gather(1, recent.clamp(min=0))
        repeats = (current[:, None] == before).all(dim=-1)
        repeats &= recent[:, :1] >= 0
        repeats &= ends <= positions

        banned = torch.zeros_like(scores, dtype=torch.uint8)
        banned.scatter_reduce_(
            1, sequence[:, context:], repeats.to(torch.uint8), "amax"
        )
        scores.masked_fill_(banned.bool(), -math.inf)


@dataclass(frozen=True)
class SourceLength(Rule):
    """EOS has probability one where an output is as long as its source, and zero before (--match-source-len).

    Other tokens keep their scores: an unknown word with a negative penalty may win.
    """

    eos: int
    lengths: Tensor
    """N"""

    def apply(self, scores: Tensor, at: Places) -> None:
        scores[:, self.eos] = torch.where(at.positions >= self.lengths, 0.0, -math.inf)


@dataclass(frozen=True)
class SearchRules:
    """The search options that decide which token is chosen.

    Positions count output tokens from 0; the token at position `max_len` is always EOS.
    """

    pad: int
    """never chosen"""
    unk: int
    eos: int
    max_len: int
    """the longest output, its EOS not counted"""
    symbols: int | None = None
    """size of the verifier's vocabulary, to which draft tokens are clamped; None: they are not clamped"""
    min_len: int = 1
    """EOS is banned before this position"""
    unk_penalty: float = 0.0
    """subtracted from the log-probability of `unk`"""
    no_repeat_ngram_size: int = 0
    """a token that completes an n-gram of this size for the second time is banned; 0: no ban"""
    suppressed: tuple[int, ...] = ()
    """tokens never chosen outside a forced prefix"""
    prefix: Tensor | None = field(default=None, repr=False)
    """forced beginnings of the outputs, B x P, padded with `pad`"""
    source_lengths: Tensor | None = field(default=None, repr=False)
    """B: an output must end exactly at this position (fairseq's --match-source-len)"""

    def bans(self, at: Places) -> Bans:
        """The bans at these places."""
        least = min(self.min_len, self.max_len)
        if at.first >= least:
            return Bans(self.pad)
        early = at.positions < least
        if self.forced_steps > 0:
            early &= at.positions >= self.forced_steps
        return Bans(self.pad, self.eos, early)

    def beside_bans(self, at: Places) -> list[Rule]:
        """The other rules that can hold at these places, in fairseq's order."""
        rules: list[Rule] = []
        if at.last >= self.max_len:
            rules.append(LongestOutput(self.eos, self.max_len))
        if self.prefix is not None and at.first < self.forced_steps:
            rules.append(ForcedPrefix(self.prefix, self.pad, self.forced_steps))
        return rules + self.further

    @cached_property
    def further(self) -> list[Rule]:
        """The rules that no fast way has, in fairseq's order."""
        rules: list[Rule] = []
        if self.unk_penalty:
            rules.append(UnknownPenalty(self.unk, self.unk_penalty))
        if self.suppressed:
            rules.append(Suppressed(self.suppressed, self.forced_steps, self.max_len))
        if self.no_repeat_ngram_size > 1:
            rules.append(RepeatedNgrams(self.no_repeat_ngram_size))
        if self.source_lengths is not None:
            rules.append(SourceLength(self.eos, self.source_lengths))
        return rules

    @property
    def are_simple(self) -> bool:
        """Whether the rules are padding, both lengths and a forced prefix: those of fast ways."""
        return not self.further

    @cached_property
    def read_output(self) -> bool:
        """Whether a rule reads the whole output so far."""
        return any(rule.reads_output for rule in self.further)

    @property
    def forced_steps(self) -> int:
        """How many steps have forced tokens in some row; in them fairseq lifts other bans for all rows."""
        if self.prefix is None:
            return 0
        return min(self.prefix.size(1), self.max_len)

    @cached_property
    def common_prefix(self) -> list[tuple[int, ...]]:
        """The tokens with which outputs are forced to begin, B x P, while all outputs have one; empty if P is 0.

        Where another rule may ban such a token, fairseq's choice in its place is found step by step: P is 0.
        """
        if self.prefix is None or not self.are_simple:
            return []
        none = {self.pad, self.eos}
        columns = takewhile(none.isdisjoint, zip(*self.prefix.tolist(), strict=True))
        return list(zip(*islice(columns, self.max_len), strict=True))

    def last_lengths(self, sentences: int) -> list[int | None]:
        """The length that each sentence's output must have, if any."""
        if self.source_lengths is None:
            return [None] * sentences
        return self.source_lengths.tolist()

    @cached_property
    def _of_rows(self) -> dict[str, Tensor]:
        """The options that differ between sentences of a batch."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }

    @property
    def differ(self) -> bool:
        """Whether options differ between sentences of a batch."""
        return bool(self._of_rows)

    def keep(self, kept: Tensor | RowSelection) -> "SearchRules":
        """The same rules for some rows of the batch."""
        if not self.differ:
            return self
        rows = kept.tensor if isinstance(kept, RowSelection) else kept
        changed: dict[str, Any] = {
            name: value[rows] for name, value in self._of_rows.items()
        }
        return replace(self, **changed)
