"""The choice of tokens under the search rules, by PyTorch's operations: the reference of every backend.

Lossless means the same output as `fairseq-generate --beam 1` with the same options; the rules are those of
`decoding.search_rules`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import Bans, Places, SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen
from fairseq_aggdec.decoding.top_k import best_entries


@dataclass(eq=False)
class LogProbs:
    """Log-probabilities, N x V, computed on access."""

    logits: Tensor
    """N x V; may be changed here"""
    normals: Tensor
    """N x 2: both are subtracted from a row's logits, one after the other"""
    bans: Bans

    def __len__(self) -> int:
        return self.logits.size(0)

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Log-probabilities of one row, V, or of several, n x V."""
        normals = self.normals[rows]
        scores = self.logits[rows] - normals[..., :1] - normals[..., 1:]
        return self.bans.apply(scores, rows)

    def gather(self, dim: int, columns: Tensor) -> Tensor:
        """As of a tensor; `dim` is 1."""
        logits = self.bans.apply(self.logits).gather(dim, columns)
        return logits - self.normals[:, :1] - self.normals[:, 1:]


Scores = LogProbs | Tensor
"""log-probabilities of N rows, N x V, to be read row by row"""

Best = tuple[Tensor, Tensor, Scores]
"""The highest log-probabilities of each row and their tokens, N x R each, in descending order; and all of them."""


def likeliest(logits: Tensor, count: int, bans: Bans) -> Best:
    """The `count` best tokens of each row of logits, N x V."""
    scores = bans.apply(logits.float().log_softmax(dim=-1))
    return *best_entries(scores, count), scores


@dataclass(frozen=True)
class Choice:
    """How a backend finds the highest scores of rows."""

    best_entries: Callable[[Tensor, int], tuple[Tensor, Tensor]] = best_entries
    """`top_k.best_entries`, or a faster function with the same result"""
    likeliest: Callable[[Tensor, int, Bans], Best] = likeliest
    """`likeliest`, or a faster function with the same result"""
    sync_is_costly: bool = False
    """whether the device is asynchronous. Two effects: of equal scores the first is chosen, not fairseq's choice, and
    vectors are copied in one transfer"""


PLAIN = Choice()


def ranked(
    choice: Choice,
    rules: SearchRules,
    logits: Tensor,
    at: Places,
    count: int,
) -> Best:
    """`likeliest` of logits at N places, N x V, under all rules; `rules` are those of the N rows."""
    values, names, scores = choice.likeliest(logits, count, rules.bans(at))
    others = rules.beside_bans(at)
    if not others:
        return values, names, scores
    changed = scores[:]
    for rule in others:
        rule.apply(changed, at)
    values, names = choice.best_entries(changed, count)
    return values, names, changed


def resolve_ties(
    choice: Choice,
    tokens: Tensor,
    values: Tensor,
    scores: Scores,
) -> Tensor:
    """The best token of each row, chosen among equal scores by `topk` of the whole row, as fairseq does.

    `tokens`: the best of each row, N x R, R at least 2 where V is; `values`: their log-probabilities, descending;
    `scores`: all, N x V.
    """
    best = tokens[:, 0]
    if tokens.size(1) == 1 or choice.sync_is_costly:
        return best
    for row, (first, second) in enumerate(values[:, :2].tolist()):
        if first == second:
            best[row] = scores[row].topk(2).indices[0]
    return best


def choose_block(
    scores: Iterable[Tensor],
    choice: Choice,
    block: Block,
    rules: SearchRules,
    ranks: int,
    sequence: Tensor | None,
) -> Chosen:
    """The choice of a verifier, see `roles.Verifier.verify`. Each position is judged by itself.

    `scores`: those of the token after each of the block's N tokens, in chunks of n x V: logits or log-probabilities,
    divided by the temperature.
    """
    ragged = block.ragged
    last = block.last_start + ragged.width - 1
    proposed = block.proposed[:, None].clamp(min=0) if ranks else None
    least = 1 if choice.sync_is_costly else 2  # two, so that ties show
    found: list[list[Tensor]] = []
    for part, chunk in _parts(scores):
        # the best entries of each position
        positions = block.positions[part]
        read = None if sequence is None else sequence[ragged.rows[part]]
        at = Places(positions, block.first_start, last, read)
        of_rows = rules.keep(ragged.rows[part]) if rules.differ else rules
        count = min(max(ranks, least), chunk.size(1))
        values, names, whole = ranked(choice, of_rows, chunk, at, count)

        # the best token; EOS at the longest length whatever its score: so the search ends, and NaN shows
        tokens = resolve_ties(choice, names, values, whole)
        log_probs = values[:, 0]
        if last >= rules.max_len:
            tokens = torch.where(positions >= rules.max_len, rules.eos, tokens)
            log_probs = whole.gather(1, tokens[:, None]).squeeze(1)
        vectors = [tokens, log_probs]

        # the draft's tokens; none passes where an output is as long as its source
        if proposed is not None:
            drafted = whole.gather(1, proposed[part])
            if of_rows.source_lengths is not None:
                ends = positions >= of_rows.source_lengths
                ends &= tokens == rules.eos
                drafted.masked_fill_(ends[:, None], -math.inf)
            higher = (values > drafted).sum(dim=1)
            vectors += [drafted.squeeze(1), higher]
        found.append(vectors)
    joined = found[0] if len(found) == 1 else map(torch.cat, zip(*found, strict=True))
    seen, tokens, log_probs, *judged = on_host(
        choice, ragged.pack(block.tokens), *joined
    )
    return Chosen(seen.long(), tokens.long(), log_probs, *judged)


def entries_behind(
    scores: Iterable[Tensor],
    choice: Choice,
    block: TreeBlock,
    rules: SearchRules,
    count: int,
    sequences: Tensor | None,
) -> Iterator[Entries]:
    """The best entries of a verifier, see `beam.roles.TreeVerifier.verify_tree`; `scores` as of `choose_block`."""
    for part, chunk in _parts(scores):
        here = block.on(chunk.device)
        read = None if sequences is None else sequences[part].to(chunk.device)
        at = Places(
            here.positions[part], block.first_position, block.last_position, read
        )
        of_rows = rules.keep(here.ragged.rows[part])
        values, names, whole = ranked(choice, of_rows, chunk, at, count)
        yield Entries(
            values.cpu(),
            names.cpu(),
            whole=None if choice.sync_is_costly else whole,
        )


def _parts(chunks: Iterable[Tensor]) -> Iterator[tuple[slice, Tensor]]:
    """Each chunk, and which rows it has."""
    end = 0
    for chunk in chunks:
        begin = end
        end += chunk.size(0)
        yield slice(begin, end), chunk


def on_host(choice: Choice, *entries: Tensor) -> Sequence[Tensor]:
    """Copy vectors to the host; from a GPU in one transfer, in fp32, which holds tokens below 2^24 exactly."""
    if not choice.sync_is_costly:
        return entries
    return torch.cat(entries).cpu().split([entry.size(0) for entry in entries])
