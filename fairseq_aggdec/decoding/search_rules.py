"""The search rules of fairseq's beam search of width one, applied to a block of positions at once.

They follow `fairseq.sequence_generator.SequenceGenerator` step by step: lossless means the same output as
`fairseq-generate --beam 1` with the same options.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

_CHUNK_WIDTH = 256
_TOP_K_CHUNK_WIDTH = 64
_MIN_SCORES_TO_CHUNK = 40_000  # with fewer scores the additional calls cost more than they save


def best(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The highest score of each position and its token, ... x V -> twice ...

    Equals `scores.max(dim=-1)`, which on a CPU reads one number at a time. Maxima of chunks are many times faster, and
    only the best chunk is searched.
    """
    vocabulary = scores.size(-1)
    if scores.device.type != "cpu" or scores.numel() < _MIN_SCORES_TO_CHUNK:
        value, token = scores.max(dim=-1)
        return value, token
    chunks = vocabulary // _CHUNK_WIDTH
    peaks = scores[..., : chunks * _CHUNK_WIDTH].unflatten(-1, (chunks, _CHUNK_WIDTH)).amax(dim=-1)
    if chunks * _CHUNK_WIDTH < vocabulary:
        peaks = torch.cat([peaks, scores[..., chunks * _CHUNK_WIDTH :].amax(dim=-1, keepdim=True)], dim=-1)
    start = peaks.argmax(dim=-1, keepdim=True) * _CHUNK_WIDTH
    inside = (start + torch.arange(_CHUNK_WIDTH)).clamp_(max=vocabulary - 1)
    value, offset = scores.gather(-1, inside).max(dim=-1)
    return value, inside.gather(-1, offset[..., None]).squeeze(-1)


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest scores of each row and their tokens, N x V -> twice N x `count`, in descending order.

    Equals `topk`, which on a CPU reads one number at a time; only the chunks with the highest maxima are searched.
    """
    if count == 1:
        value, token = best(scores)
        return value[:, None], token[:, None]
    chunks = scores.size(1) // _TOP_K_CHUNK_WIDTH
    whole = chunks * _TOP_K_CHUNK_WIDTH
    if scores.device.type != "cpu" or scores.numel() < _MIN_SCORES_TO_CHUNK or chunks < 8 * count:
        values, tokens = scores.topk(count)
        return values, tokens
    peaks = scores[:, :whole].unflatten(1, (chunks, _TOP_K_CHUNK_WIDTH)).amax(dim=-1)
    inside = (peaks.topk(count).indices[..., None] * _TOP_K_CHUNK_WIDTH + torch.arange(_TOP_K_CHUNK_WIDTH)).flatten(1)
    if whole < scores.size(1):
        inside = torch.cat([inside, torch.arange(whole, scores.size(1)).expand(scores.size(0), -1)], dim=1)
    values, places = scores.gather(1, inside).topk(count)
    return values, inside.gather(1, places)


class Bans(NamedTuple):
    """Banned tokens: their log-probabilities become minus infinity."""

    never: int
    """token banned in all rows"""
    late: int = -1
    """token banned in the rows of `early`"""
    early: Tensor | None = None
    """N booleans; None: no row"""

    def apply(self, scores: Tensor, rows: int | slice = slice(None)) -> Tensor:
        """Ban the tokens in place, in the scores of these rows: V of one row, n x V of several."""
        scores[..., self.never] = -math.inf
        if self.early is not None:
            scores[..., self.late].masked_fill_(self.early[rows], -math.inf)
        return scores

    def hit(self, tokens: Tensor) -> Tensor:
        """Whether the given token of each row is banned, N -> N booleans."""
        banned = tokens == self.never
        return banned if self.early is None else banned | (self.early & (tokens == self.late))


class LogProbs:
    """Log-probabilities of N rows, computed on access."""

    def __init__(self, logits: Tensor, normals: Tensor, bans: Bans) -> None:
        """Take logits, N x V; both `normals` of a row, N x 2, are subtracted from its logits one after the other."""
        self._logits, self._normals, self._bans = logits, normals, bans

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Log-probabilities of one row, V, or of several, n x V."""
        normals = self._normals[rows]
        return self._bans.apply(self._logits[rows] - normals[..., :1] - normals[..., 1:], rows)

    def of(self, tokens: Tensor) -> Tensor:
        """The log-probability of one token of each row, N -> N."""
        drafted = self._logits.gather(-1, tokens[:, None]).squeeze(-1) - self._normals[:, 0] - self._normals[:, 1]
        return drafted.masked_fill_(self._bans.hit(tokens), -math.inf)


def likeliest(logits: Tensor, count: int, bans: Bans) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
    """The highest log-probabilities of each row and their tokens, N x V -> twice N x `count`, in descending order.

    The third result has all log-probabilities, to be read row by row.
    """
    scores = bans.apply(logits.float().log_softmax(dim=-1))
    return *best_entries(scores, count), scores


def resolve_ties(tokens: Tensor, values: Tensor, scores: LogProbs | Tensor) -> Tensor:
    """The best token of each row, N, chosen among equal scores as fairseq does: by `topk` of the whole row.

    On a GPU the first token is taken, since the host would have to wait to see ties.

    Args:
        tokens: the best tokens of each row, N x R; R is at least 2 where V is.
        values: the log-probabilities of `tokens`, in descending order.
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
    """The best allowed token at each of N positions, and the scores that judge other tokens."""

    tokens: Tensor
    """N"""
    log_probs: Tensor
    """log-probabilities of `tokens`, N, fp32"""
    highest: Tensor
    """the highest scores, N x R, in descending order; R is at least the number asked for"""
    scores: LogProbs | Tensor
    """log-probabilities, penalties taken off, N x V, fp32; minus infinity where a rule bans the token"""
    forced: Tensor | None
    """N booleans: a rule forces the token, whatever the scores; None: nowhere"""

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
    find_best: Callable[[Tensor, int], tuple[Tensor, Tensor]] = field(default=best_entries, repr=False)
    """`best_entries`, or a faster function with the same result"""
    find_likeliest: Callable[[Tensor, int, Bans], tuple[Tensor, Tensor, LogProbs | Tensor]] = field(
        default=likeliest, repr=False
    )
    """`likeliest`, or a faster function with the same result"""

    def keep(self, rows: Tensor) -> "SearchRules":
        """The same rules for some rows of the batch."""
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
        """The best allowed token at each of N positions, by the rules of N rows (see `keep`).

        Each position is judged by itself, so a block may be passed in parts.

        Args:
            logits: the verifier's scores, N x V.
            positions: of the logits, N.
            sequence: decoder inputs of each position's row up to the end of the block, N x L: the start symbol, then
                the output. Read by the n-gram rule alone, else None.
            earliest: lower bound of the positions, on the host; rules that cannot apply are skipped.
            latest: upper bound of the positions; None: unknown.
            ranks: number of highest scores wanted, at most V.
        """
        # two at least on a CPU, so that `resolve_ties` sees ties
        count = max(ranks, min(2, logits.size(-1))) if logits.device.type == "cpu" else ranks
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            values, names, whole = self.find_likeliest(logits, count, bans)
            return Choices(resolve_ties(names, values, whole), values[:, 0], values, whole, None)
        scores = self._ruled_scores(logits, positions, sequence, earliest)
        ended = None if self.source_lengths is None else positions >= self.source_lengths
        values, names = self.find_best(scores, count)
        tokens, log_probs = resolve_ties(names, values, scores), values[:, 0]
        forced: Tensor | None = None
        only = self._forced_tokens(positions, latest)
        if only is not None:
            forced = only >= 0
            if ended is not None:  # only a negative penalty lifts the probability of a forced unk above one
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
        """The best scores and their tokens behind N prefixes, in descending order, twice N x `count`.

        Other arguments as of `choose`. The third result has all scores, N x V, minus infinity where a rule bans the
        token.
        """
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            return self.find_likeliest(logits, count, bans)
        scores = self._scores_with_forced(logits, positions, sequence, earliest, latest)
        return *self.find_best(scores, count), scores

    def _only_bans(self, positions: Tensor, earliest: int, latest: int | None) -> Bans | None:
        """The rules as bans, where they only ban `pad` and an early EOS; None where other rules apply."""
        has_more = (
            self.unk_penalty or self.suppressed or self.no_repeat_ngram_size > 1 or self.source_lengths is not None
        )
        if has_more or earliest < self._forced_steps or latest is None or latest >= self.max_len:
            return None
        if earliest >= self.min_len:
            return Bans(self.pad)
        return Bans(self.pad, self.eos, positions < self.min_len)

    def _scores_with_forced(
        self, logits: Tensor, positions: Tensor, sequence: Tensor | None, earliest: int, latest: int | None
    ) -> Tensor:
        scores = self._ruled_scores(logits, positions, sequence, earliest)
        only = self._forced_tokens(positions, latest)
        if only is None:
            return scores
        kept = only.clamp(min=0)[:, None]
        alone = torch.full_like(scores, -math.inf).scatter_(1, kept, scores.gather(1, kept))
        if self.source_lengths is not None:  # fairseq applies this rule last
            alone[:, self.eos] = scores[:, self.eos]
        return torch.where(only[:, None] >= 0, alone, scores)

    def _forced_tokens(self, positions: Tensor, latest: int | None) -> Tensor | None:
        """The token forced by the prefix or by the longest output, N, -1 where none is; None: none anywhere."""
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
        """The number of steps with forced tokens in some row; in them fairseq lifts `min_len` for all rows."""
        return 0 if self.prefix is None else min(self.prefix.size(1), self.max_len)

    def _ruled_scores(self, logits: Tensor, positions: Tensor, sequence: Tensor | None, earliest: int) -> Tensor:
        """Log-probabilities after penalties and bans; forced tokens are not applied."""
        # as in fairseq, which normalises before it bans
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
        if (
            self.source_lengths is not None
        ):  # as in fairseq: EOS gets probability one, and is compared with other tokens
            scores[:, self.eos] = torch.where(positions >= self.source_lengths, 0.0, -math.inf)
        return scores


def _entries(table: Tensor, columns: Tensor) -> Tensor:
    """The entry of each row in its column, N x M and N -> N."""
    return table.gather(1, columns[:, None]).squeeze(1)


def ban_repeated_ngrams(scores: Tensor, positions: Tensor, sequence: Tensor, size: int) -> None:
    """Set to minus infinity, in place, the score of each token that would repeat an n-gram of its row.

    Args:
        scores: N x V.
        positions: N; `scores[i]` predicts the token after `sequence[i, positions[i]]`; later tokens are ignored.
        sequence: N x L, the decoder's inputs for each row of `scores`.
        size: n, at least 2.
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
