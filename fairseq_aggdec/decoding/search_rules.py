"""What a beam search of width one does to the verifier's scores before it takes the best token.

Lossless means: the same as `fairseq-generate --beam 1` with the same options. The rules follow
`fairseq.sequence_generator.SequenceGenerator` step by step, for a block of positions at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

_PIECE = 256
_SMALL_PIECE = 64  # where several entries of a row are wanted
_WORTH_PIECES = 40_000  # scores; below, the fixed cost of the extra calls is more than they save


def best(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The highest score of each position and its token, ... x V -> twice ...

    As `scores.max(dim=-1)`, which on a CPU reads one number at a time: plain maxima, of pieces, are many times faster,
    and only the best piece has to be searched.
    """
    vocabulary = scores.size(-1)
    if scores.device.type != "cpu" or scores.numel() < _WORTH_PIECES:
        value, token = scores.max(dim=-1)
        return value, token
    pieces = vocabulary // _PIECE
    peaks = scores[..., : pieces * _PIECE].unflatten(-1, (pieces, _PIECE)).amax(dim=-1)
    if pieces * _PIECE < vocabulary:
        peaks = torch.cat([peaks, scores[..., pieces * _PIECE :].amax(dim=-1, keepdim=True)], dim=-1)
    start = peaks.argmax(dim=-1, keepdim=True) * _PIECE
    inside = (start + torch.arange(_PIECE)).clamp_(max=vocabulary - 1)
    value, offset = scores.gather(-1, inside).max(dim=-1)
    return value, inside.gather(-1, offset[..., None]).squeeze(-1)


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest scores of each row and their tokens, N x V -> twice N x `count`, falling.

    As `topk`, which on a CPU reads one number at a time: they are in those pieces that have the highest maxima.
    """
    if count == 1:
        value, token = best(scores)
        return value[:, None], token[:, None]
    pieces = scores.size(1) // _SMALL_PIECE
    whole = pieces * _SMALL_PIECE
    if scores.device.type != "cpu" or scores.numel() < _WORTH_PIECES or pieces < 8 * count:
        values, tokens = scores.topk(count)
        return values, tokens
    peaks = scores[:, :whole].unflatten(1, (pieces, _SMALL_PIECE)).amax(dim=-1)
    inside = (peaks.topk(count).indices[..., None] * _SMALL_PIECE + torch.arange(_SMALL_PIECE)).flatten(1)
    if whole < scores.size(1):
        inside = torch.cat([inside, torch.arange(whole, scores.size(1)).expand(scores.size(0), -1)], dim=1)
    values, places = scores.gather(1, inside).topk(count)
    return values, inside.gather(1, places)


class Bans(NamedTuple):
    """Tokens whose log-probabilities are minus infinity."""

    never: int
    """everywhere"""
    late: int = -1
    """in the rows `early`, too"""
    early: Tensor | None = None
    """N booleans; None for nowhere"""

    def apply(self, scores: Tensor, rows: int | slice = slice(None)) -> Tensor:
        """Ban them in place, in the scores of these rows: V of one, n x V of several."""
        scores[..., self.never] = -math.inf
        if self.early is not None:
            scores[..., self.late].masked_fill_(self.early[rows], -math.inf)
        return scores

    def hit(self, tokens: Tensor) -> Tensor:
        """Whether they ban one token of each row, N -> N booleans."""
        banned = tokens == self.never
        return banned if self.early is None else banned | (self.early & (tokens == self.late))


class LogProbs:
    """Log-probabilities of N rows, made where they are asked for."""

    def __init__(self, logits: Tensor, normals: Tensor, bans: Bans) -> None:
        """Of logits, N x V; `normals`, N x 2, are taken off a row's logits, one number after the other."""
        self._logits, self._normals, self._bans = logits, normals, bans

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, rows: int | slice) -> Tensor:
        """V of one row, n x V of several."""
        normals = self._normals[rows]
        return self._bans.apply(self._logits[rows] - normals[..., :1] - normals[..., 1:], rows)

    def of(self, tokens: Tensor) -> Tensor:
        """Of one token of each row, N -> N."""
        drafted = self._logits.gather(-1, tokens[:, None]).squeeze(-1) - self._normals[:, 0] - self._normals[:, 1]
        return drafted.masked_fill_(self._bans.hit(tokens), -math.inf)


def likeliest(logits: Tensor, count: int, bans: Bans) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
    """The highest log-probabilities of each row and their tokens, N x V -> twice N x `count`, falling.

    Returns all of them, too, to be read row by row.
    """
    scores = bans.apply(logits.float().log_softmax(dim=-1))
    return *best_entries(scores, count), scores


def settled(tokens: Tensor, values: Tensor, scores: LogProbs | Tensor) -> Tensor:
    """The best token of each row, N, as fairseq finds it.

    Of several that are equally good, a beam of one takes what `topk` makes of the whole row. A GPU would have to be
    waited for to see them: there it is the first.

    Args:
        tokens: the best ones of each row, N x R: two or more, or the only one.
        values: their log-probabilities, falling.
        scores: all log-probabilities, N x V.
    """
    best = tokens[:, 0]
    if tokens.size(1) == 1 or tokens.device.type != "cpu":
        return best
    tied = [row for row, (first, second) in enumerate(values[:, :2].tolist()) if first == second]
    if tied:
        best = best.clone()
        for row in tied:
            best[row] = scores[row].topk(2).indices[0]
    return best


@dataclass(frozen=True)
class Choices:
    """The best allowed token at each of N positions, and what it takes to judge another."""

    tokens: Tensor
    """N"""
    log_probs: Tensor
    """of `tokens`, N, fp32"""
    highest: Tensor
    """the highest scores, N x R, falling: as many as were asked for, or more"""
    scores: LogProbs | Tensor
    """log-probabilities, penalties taken off, N x V, fp32; minus infinity where a rule bans the token"""
    forced: Tensor | None
    """N: where a rule leaves no choice whatever the scores are; None for nowhere"""

    def score_of(self, tokens: Tensor) -> Tensor:
        """The score of a token at each position, N -> N."""
        return self.scores.of(tokens) if isinstance(self.scores, LogProbs) else _entries(self.scores, tokens)


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
    """how many symbols the verifier knows, in whose place a drafter may say anything; None: no drafter does"""
    min_len: int = 1
    """EOS is banned before this position"""
    unk_penalty: float = 0.0
    """taken off the log-probability of `unk`"""
    no_repeat_ngram_size: int = 0
    """tokens that would complete an n-gram of this size for the second time are banned; 0: none"""
    suppressed: tuple[int, ...] = ()
    """tokens never chosen outside a forced prefix"""
    prefix: Tensor | None = field(default=None, repr=False)
    """forced beginnings of the outputs, B x P, padded with `pad`"""
    source_lengths: Tensor | None = field(default=None, repr=False)
    """B: an output must end exactly at this position (fairseq's --match-source-len)"""
    find_best: Callable[[Tensor, int], tuple[Tensor, Tensor]] = field(default=best_entries, repr=False)
    """`best_entries`, or what finds the same in less time"""
    find_likeliest: Callable[[Tensor, int, Bans], tuple[Tensor, Tensor, LogProbs | Tensor]] = field(
        default=likeliest, repr=False
    )
    """as `find_best`"""

    def keep(self, rows: Tensor) -> "SearchRules":
        """The same rules for a subset of the batch, given as row numbers."""
        if self.prefix is None and self.source_lengths is None:
            return self
        return replace(
            self,
            prefix=None if self.prefix is None else self.prefix[rows],
            source_lengths=None if self.source_lengths is None else self.source_lengths[rows],
        )

    def choose(
        self,
        logits: Tensor,
        positions: Tensor,
        sequence: Tensor | None,
        earliest: int = 0,
        latest: int | None = None,
        ranks: int = 1,
    ) -> Choices:
        """The best allowed token at each of N positions; the rules are those of their rows, N, see `keep`.

        Each position is judged by itself: a block may be handed over in parts.

        Args:
            logits: the verifier's scores, N x V.
            positions: of the logits, N.
            sequence: decoder inputs of the position's row up to the end of the block, N x L: `sequence[n, p]` is what
                the decoder read at position p (the start symbol at 0, then the output). Read by rules that look back;
                None where there are none.
            earliest: no position is below; what the host knows of positions spares rules that cannot apply.
            latest: no position is above; None for unknown.
            ranks: how many of the highest scores are wanted, at most V.
        """
        # on a CPU two, by which `settled` sees ties
        count = max(ranks, min(2, logits.size(-1))) if logits.device.type == "cpu" else ranks
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            values, names, whole = self.find_likeliest(logits, count, bans)
            return Choices(settled(names, values, whole), values[:, 0], values, whole, None)
        scores = self._ruled(logits, positions, sequence, earliest)
        ended = None if self.source_lengths is None else positions >= self.source_lengths
        values, names = self.find_best(scores, count)
        tokens, log_probs = settled(names, values, scores), values[:, 0]
        forced: Tensor | None = None
        only = self._only(positions, latest)
        if only is not None:
            forced = only >= 0
            if ended is not None:  # only a negative penalty lifts the prefix's own unk above one
                loses = ended & (_entries(scores, only.clamp(min=0)) <= 0.0)
                only = torch.where(forced & loses, self.eos, only)
            tokens = torch.where(forced, only, tokens)
        if forced is not None:
            log_probs = _entries(scores, tokens)
        if ended is not None:
            is_end = ended & (tokens == self.eos)
            forced = is_end if forced is None else forced | is_end
        return Choices(tokens, log_probs, values, scores, forced)

    def find_entries(
        self,
        count: int,
        logits: Tensor,
        positions: Tensor,
        sequence: Tensor | None,
        earliest: int = 0,
        latest: int | None = None,
    ) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
        """What a beam search reads behind prefixes: the best entries of all scores, falling, twice N x `count`.

        Other arguments as of `choose`. Returns all scores, too, N x V, minus infinity where a rule bans the token.
        """
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            return self.find_likeliest(logits, count, bans)
        scores = self._rows(logits, positions, sequence, earliest, latest)
        return *self.find_best(scores, count), scores

    def _only_bans(self, positions: Tensor, earliest: int, latest: int | None) -> Bans | None:
        """What the rules come to where they ban `pad` and too early an end, and no more; None where they do more."""
        has_more = (
            self.unk_penalty or self.suppressed or self.no_repeat_ngram_size > 1 or self.source_lengths is not None
        )
        if has_more or earliest < self._forced_steps or latest is None or latest >= self.max_len:
            return None
        if earliest >= self.min_len:
            return Bans(self.pad)
        return Bans(self.pad, self.eos, positions < self.min_len)

    def _rows(
        self, logits: Tensor, positions: Tensor, sequence: Tensor | None, earliest: int, latest: int | None
    ) -> Tensor:
        scores = self._ruled(logits, positions, sequence, earliest)
        only = self._only(positions, latest)
        if only is None:
            return scores
        kept = only.clamp(min=0)[:, None]
        alone = torch.full_like(scores, -math.inf).scatter_(1, kept, scores.gather(1, kept))
        if self.source_lengths is not None:  # that rule is fairseq's last
            alone[:, self.eos] = scores[:, self.eos]
        return torch.where(only[:, None] >= 0, alone, scores)

    def _only(self, positions: Tensor, latest: int | None) -> Tensor | None:
        """The token that a forced beginning or the longest output leaves, N, minus 1 for any; None: any everywhere."""
        only: Tensor | None = None
        if self._forced_steps > 0:
            assert self.prefix is not None
            beginning = _entries(self.prefix, positions.clamp(max=self.prefix.size(1) - 1))
            only = torch.where((positions < self._forced_steps) & (beginning != self.pad), beginning, -1)
        if latest is None or latest >= self.max_len:
            only = torch.where(positions >= self.max_len, self.eos, -1 if only is None else only)
        return only

    @property
    def _forced_steps(self) -> int:
        """Steps in which some row could have a forced token; fairseq lifts the length minimum for all rows then."""
        return 0 if self.prefix is None else min(self.prefix.size(1), self.max_len)

    def _ruled(self, logits: Tensor, positions: Tensor, sequence: Tensor | None, earliest: int) -> Tensor:
        """Log-probabilities with penalties and bans, but for those that leave a single token."""
        # fairseq normalises first and bans afterwards; in `choose`, too, the same function does it
        scores = self.find_likeliest(logits, 1, Bans(self.pad))[2][:]
        if self.unk_penalty:
            scores[:, self.unk] -= self.unk_penalty
        if earliest < self.min_len or self.suppressed:
            free = positions >= self._forced_steps
            scores[:, self.eos].masked_fill_(free & (positions < min(self.min_len, self.max_len)), -math.inf)
            for token in self.suppressed:
                scores[:, token].masked_fill_(free & (positions < self.max_len), -math.inf)
        if self.no_repeat_ngram_size > 1:
            assert sequence is not None
            ban_repeated_ngrams(scores, positions, sequence, self.no_repeat_ngram_size)
        if self.source_lengths is not None:  # fairseq gives the EOS probability one then, and compares it with the rest
            scores[:, self.eos] = torch.where(positions >= self.source_lengths, 0.0, -math.inf)
        return scores


def _entries(table: Tensor, columns: Tensor) -> Tensor:
    """One entry of each row, N x M and N -> N."""
    return table.gather(1, columns[:, None]).squeeze(1)


def ban_repeated_ngrams(scores: Tensor, positions: Tensor, sequence: Tensor, size: int) -> None:
    """Set to minus infinity, in place, what would complete an n-gram that the row already holds.

    Args:
        scores: N x V.
        positions: N; the scores at position p predict what follows `sequence[:, p]`.
        sequence: N x L, the decoder's inputs.
        size: n >= 2.
    """
    context = size - 1
    if sequence.size(1) <= context:
        return
    grams = sequence.unfold(1, context, 1)[:, :-1]  # N x G x (n-1): every context that has a continuation
    continuations = sequence[:, context:]  # N x G
    ends = torch.arange(context, sequence.size(1), device=sequence.device)  # G: position of each continuation
    recent = positions[:, None] + torch.arange(1 - context, 1, device=sequence.device)  # N x (n-1): the current context
    current = sequence.gather(1, recent.clamp(min=0))
    repeated = (current[:, None] == grams).all(dim=-1)  # N x G
    repeated &= (recent[:, :1] >= 0) & (ends <= positions[:, None])
    banned = torch.zeros_like(scores, dtype=torch.uint8)
    banned.scatter_reduce_(1, continuations, repeated.to(torch.uint8), "amax")
    scores.masked_fill_(banned.bool(), -math.inf)
