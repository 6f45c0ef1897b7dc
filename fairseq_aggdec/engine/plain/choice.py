"""The choice of tokens under the search rules, by PyTorch's operations: the reference of every backend.

The rules follow `fairseq.sequence_generator.SequenceGenerator` step by step: lossless means the same output as
`fairseq-generate --beam 1` with the same options.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen
from fairseq_aggdec.decoding.top_k import best_entries


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
class Choice:
    """How a backend finds the highest scores of rows."""

    best_entries: Callable[[Tensor, int], tuple[Tensor, Tensor]] = best_entries
    """`top_k.best_entries`, or a faster function with the same result"""
    likeliest: Callable[[Tensor, int, Bans], tuple[Tensor, Tensor, LogProbs | Tensor]] = likeliest
    """`likeliest`, or a faster function with the same result"""
    reads_wait: bool = False
    """whether the device is asynchronous. Two effects: of equal scores the first is chosen, not fairseq's choice, and
    vectors are copied in one transfer"""


PLAIN = Choice()


@dataclass(frozen=True)
class RuledChoice:
    """Chooses tokens by scores under search rules."""

    rules: SearchRules
    """of each of N rows"""
    choice: Choice = PLAIN

    def choose(
        self,
        logits: Tensor,
        positions: Tensor,
        sequence: Tensor | None,
        earliest: int = 0,
        latest: int | None = None,
        ranks: int = 0,
    ) -> Choices:
        """The best allowed token at each of N positions, by the rules of these N rows.

        Each position is judged by itself, so a block may be passed in parts.

        Args:
            logits: the verifier's scores, N x V.
            positions: of the logits, N.
            sequence: decoder inputs of each position's row up to the end of the block, N x L: the start symbol, then
                the output. Read by the n-gram rule alone, else None.
            earliest: lower bound of the positions, on the host; rules that cannot apply are skipped.
            latest: upper bound of the positions; None: unknown.
            ranks: number of highest scores wanted, at most V; one at least is found.
        """
        rules, count = self.rules, max(1, ranks)
        if not self.choice.reads_wait:  # two at least, so that ties show
            count = max(count, min(2, logits.size(-1)))
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            values, names, whole = self.choice.likeliest(logits, count, bans)
            return Choices(resolve_ties(self.choice, names, values, whole), values[:, 0], values, whole, None)
        scores = self._ruled_scores(logits, positions, sequence, earliest)
        ended = None if rules.source_lengths is None else positions >= rules.source_lengths
        values, names = self.choice.best_entries(scores, count)
        tokens, log_probs = resolve_ties(self.choice, names, values, scores), values[:, 0]
        forced: Tensor | None = None
        only = self._forced_tokens(positions, latest)
        if only is not None:
            forced = only >= 0
            if ended is not None:  # only a negative penalty lifts the probability of a forced unk above one
                loses = ended & (_entries(scores, only.clamp(min=0)) <= 0.0)
                only = torch.where(forced & loses, rules.eos, only)
            tokens = torch.where(forced, only, tokens)
            log_probs = _entries(scores, tokens)
        if ended is not None:
            is_end = ended & (tokens == rules.eos)
            forced = is_end if forced is None else forced | is_end
        return Choices(tokens, log_probs, values, scores, forced)

    def entries(
        self,
        count: int,
        logits: Tensor,
        positions: Tensor,
        sequence: Tensor | None,
        earliest: int = 0,
        latest: int | None = None,
    ) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
        """The best scores and their tokens after N prefixes, in descending order, twice N x `count`.

        Other arguments as of `choose`. The third result has all scores, N x V, minus infinity where a rule bans the
        token.
        """
        bans = self._only_bans(positions, earliest, latest)
        if bans is not None:
            return self.choice.likeliest(logits, count, bans)
        scores = self._ruled_scores(logits, positions, sequence, earliest)
        only = self._forced_tokens(positions, latest)
        if only is not None:
            kept = only.clamp(min=0)[:, None]
            alone = torch.full_like(scores, -math.inf).scatter_(1, kept, scores.gather(1, kept))
            if self.rules.source_lengths is not None:  # fairseq applies this rule last
                alone[:, self.rules.eos] = scores[:, self.rules.eos]
            scores = torch.where(only[:, None] >= 0, alone, scores)
        return *self.choice.best_entries(scores, count), scores

    def _only_bans(self, positions: Tensor, earliest: int, latest: int | None) -> Bans | None:
        """The rules as bans, where they only ban `pad` and an early EOS; None where other rules apply."""
        rules = self.rules
        if not rules.are_simple or earliest < rules.forced_steps or latest is None or latest >= rules.max_len:
            return None
        if earliest >= rules.min_len:
            return Bans(rules.pad)
        return Bans(rules.pad, rules.eos, positions < rules.min_len)

    def _forced_tokens(self, positions: Tensor, latest: int | None) -> Tensor | None:
        """The token forced by the prefix or by the longest output, N, -1 where none is; None: none anywhere."""
        rules = self.rules
        only: Tensor | None = None
        if rules.forced_steps > 0:
            assert rules.prefix is not None
            beginning = _entries(rules.prefix, positions.clamp(max=rules.prefix.size(1) - 1))
            only = torch.where((positions < rules.forced_steps) & (beginning != rules.pad), beginning, -1)
        if latest is None or latest >= rules.max_len:
            only = torch.where(positions >= rules.max_len, rules.eos, -1 if only is None else only)
        return only

    def _ruled_scores(self, logits: Tensor, positions: Tensor, sequence: Tensor | None, earliest: int) -> Tensor:
        """Log-probabilities after penalties and bans, in fairseq's order; forced tokens are not applied."""
        rules = self.rules
        # as in fairseq, which normalises before it bans
        scores = self.choice.likeliest(logits, 1, Bans(rules.pad))[2][:]
        if rules.unk_penalty:
            scores[:, rules.unk] -= rules.unk_penalty
        if earliest < rules.min_len or rules.suppressed:
            free = positions >= rules.forced_steps
            scores[:, rules.eos].masked_fill_(free & (positions < min(rules.min_len, rules.max_len)), -math.inf)
            for token in rules.suppressed:
                scores[:, token].masked_fill_(free & (positions < rules.max_len), -math.inf)
        if rules.read_output:
            assert sequence is not None
            ban_repeated_ngrams(scores, positions, sequence, rules.no_repeat_ngram_size)
        if rules.source_lengths is not None:  # fairseq gives EOS probability one, and compares it with other tokens
            scores[:, rules.eos] = torch.where(positions >= rules.source_lengths, 0.0, -math.inf)
        return scores


def resolve_ties(choice: Choice, tokens: Tensor, values: Tensor, scores: LogProbs | Tensor) -> Tensor:
    """The best token of each row, chosen among equal scores by `topk` of the whole row, as fairseq does.

    `tokens`: the best of each row, N x R, R at least 2 where V is; `values`: their log-probabilities, descending;
    `scores`: all, N x V.
    """
    best = tokens[:, 0]
    if tokens.size(1) == 1 or choice.reads_wait:
        return best
    tied = [row for row, (first, second) in enumerate(values[:, :2].tolist()) if first == second]
    if tied:
        best = best.clone()
        for row in tied:
            best[row] = scores[row].topk(2).indices[0]
    return best


def choose_block(
    scores: Iterable[Tensor], choice: Choice, block: Block, rules: SearchRules, ranks: int, sequence: Tensor | None
) -> Chosen:
    """The choice of a verifier, see `roles.Verifier.verify`.

    `scores`: those of the token after each of the block's N tokens, in chunks of n x V: logits or log-probabilities,
    divided by the temperature.
    """
    ragged, positions, proposed = block.ragged, block.positions, block.proposed if ranks else None
    last, total = block.last_start + ragged.width - 1, positions.size(0)
    found: list[tuple[Tensor, ...]] = []
    first = 0
    for chunk in scores:
        part = slice(first, first + chunk.size(0))
        first = part.stop
        at = positions if chunk.size(0) == total else positions[part]
        seen = None if sequence is None else sequence[ragged.rows[part]]
        ruled = RuledChoice(rules.keep(ragged.rows[part]) if rules.differ else rules, choice)
        chosen = ruled.choose(chunk, at, seen, block.first_start, last, min(ranks, chunk.size(1)))
        vectors: tuple[Tensor, ...] = (chosen.tokens, chosen.log_probs)
        if proposed is not None:
            drafted = chosen.score_of(proposed[part].clamp(min=0))
            higher = (chosen.highest > drafted[:, None]).sum(dim=1)
            vectors += drafted, higher, torch.zeros_like(at) if chosen.forced is None else chosen.forced
        found.append(vectors)
    whole = found[0] if len(found) == 1 else tuple(torch.cat(parts) for parts in zip(*found, strict=True))
    read, tokens, log_probs, *judged = on_host(choice, ragged.pack(block.tokens), *whole)
    if not judged:
        return Chosen(read.long(), tokens.long(), log_probs)
    drafted, higher, forced = judged
    return Chosen(read.long(), tokens.long(), log_probs, forced.bool(), drafted, higher)


def entries_behind(
    scores: Iterable[Tensor],
    choice: Choice,
    block: TreeBlock,
    rules: SearchRules,
    count: int,
    sequences: Tensor | None,
) -> Iterator[Entries]:
    """The best entries of a verifier, see `beam.roles.TreeVerifier.verify_tree`; `scores` as of `choose_block`."""
    first = 0
    for chunk in scores:
        part, here = slice(first, first + chunk.size(0)), block.on(chunk.device)
        first = part.stop
        read = here.tokens[part, None] if sequences is None else sequences[part].to(chunk.device)
        ruled = RuledChoice(rules.keep(here.ragged.rows[part]), choice)
        found = ruled.entries(count, chunk, here.positions[part], read, block.first_position, block.last_position)
        yield Entries(found[0].cpu(), found[1].cpu(), None if choice.reads_wait else found[2])


def on_host(choice: Choice, *entries: Tensor) -> Sequence[Tensor]:
    """Copy vectors to the host; from a GPU in one transfer, in fp32, which holds tokens below 2^24 exactly."""
    if not choice.reads_wait:
        return entries
    return torch.cat(entries).cpu().split([entry.size(0) for entry in entries])


def _entries(table: Tensor, columns: Tensor) -> Tensor:
    """The entry of each row in its column, N x M and N -> N."""
    return table.gather(1, columns[:, None]).squeeze(1)


def ban_repeated_ngrams(scores: Tensor, positions: Tensor, sequence: Tensor, size: int) -> None:
    """Set to minus infinity, in place, the score of each token that would repeat an n-gram of its row, n = `size` >= 2.

    `scores[i]`, of N x V, predicts the token after `sequence[i, positions[i]]`, of N x L; later tokens are ignored.
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
