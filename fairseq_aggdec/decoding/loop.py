"""The only draft-verify-accept loop (papers/000 Algorithm 1 and §3.2; papers/002 Algorithm 1).

    draft -> verify -> accept        until every sentence has ended

One iteration feeds each row's last committed token and its draft to the verifier, accepts the longest prefix of the
draft that the verifier would have chosen itself, and commits the verifier's own next token after it: the correction at
the bifurcation, or the bonus token when all passed. A row without a draft makes an ordinary greedy step.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding import acceptance
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import SentenceStats


class Drafter(Protocol):
    """Proposes what the verifier will probably say next."""

    def propose(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Draft a continuation of every row.

        Args:
            tokens: decoder inputs so far, B x T: the start symbol, then the output; junk behind `lengths`.
            lengths: B, the start symbol counted.

        Returns:
            draft tokens, B x K (K may differ from call to call), and draft lengths, B, 0 for "no idea".
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class Verifier(Protocol):
    """The model whose greedy output is wanted."""

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """Read a block of tokens behind what each row has committed.

        Args:
            block: B x W tokens.
            starts: B, the position of each row's first block token; everything cached from there on is overwritten.
            longest: the largest entry of `starts`, known on the host.

        Returns:
            logits, B x W x V, which the caller may overwrite: row w predicts the token after `block[:, w]`.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class NoDrafter:
    """Greedy decoding: every block is the last token alone."""

    def propose(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return tokens.new_empty(tokens.size(0), 0), torch.zeros_like(lengths)

    def keep(self, rows: Tensor) -> None:
        pass


@dataclass
class Decoded:
    """One finished sentence."""

    tokens: Tensor
    """output, L, EOS included"""
    log_probs: Tensor
    """log-probability of each output token, L, fp32"""
    stats: SentenceStats
    drafts: list[Tensor] | None = None
    """the draft of every iteration, where history was asked for"""


def draft_verify_accept(
    drafter: Drafter, verifier: Verifier, rules: SearchRules, first_tokens: Tensor, keep_drafts: bool = False
) -> list[Decoded]:
    """Decode a batch; the output does not depend on the drafter.

    Args:
        drafter: ready to draft for this batch.
        verifier: ready to score this batch from position 0.
        rules: what may be chosen, for this batch.
        first_tokens: the decoder's first input, B.
        keep_drafts: return the drafts too.

    Returns:
        one `Decoded` a row, in the rows' order.
    """
    batch_size, device = first_tokens.size(0), first_tokens.device
    done: list[Decoded | None] = [None] * batch_size
    traces = [SentenceStats() for _ in range(batch_size)]
    drafts: list[list[Tensor]] = [[] for _ in range(batch_size)]
    ids = list(range(batch_size))  # which sentence each remaining row is

    tokens = torch.full((batch_size, rules.max_len + 2), rules.pad, dtype=torch.long, device=device)
    tokens[:, 0] = first_tokens
    log_probs = torch.zeros(batch_size, rules.max_len + 2, device=device)
    lengths = torch.ones(batch_size, dtype=torch.long, device=device)
    lengths_host = [1] * batch_size
    draft, draft_lengths = _clipped(drafter.propose(tokens, lengths), lengths, rules.max_len)
    draft_lengths_host = draft_lengths.tolist()

    while ids:
        # draft: one block a row, its last committed token first
        width = 1 + max(draft_lengths_host)
        draft = draft[:, : width - 1]
        if keep_drafts:
            for row, sentence in enumerate(ids):
                drafts[sentence].append(draft[row, : draft_lengths_host[row]].clone())
        starts = lengths - 1
        columns = torch.arange(width, device=device)
        block = torch.cat([tokens.gather(1, starts[:, None]), draft], dim=1)  # B x W
        longest = max(lengths_host) - 1
        if tokens.size(1) < longest + width + 1:
            tokens = _widened(tokens, longest + width + 1, rules.pad)
            log_probs = _widened(log_probs, longest + width + 1, 0.0)

        # verify: what the model itself says at every position of the block
        tokens.scatter_(1, starts[:, None] + columns, block)  # where rules look back, they see the draft
        logits = verifier.score(block, starts, longest)  # B x W x V
        chosen, chosen_log_probs = rules.choose(
            logits, starts, tokens[:, : longest + width], min(lengths_host) - 1, longest + width - 1
        )

        # accept: the agreed prefix and the verifier's own token, up to the first EOS
        accepted = acceptance.exact(draft, draft_lengths, chosen)
        is_end = (chosen == rules.eos) & (columns <= accepted[:, None])
        finished = is_end.any(dim=1)
        committed = torch.where(finished, is_end.long().argmax(dim=1), accepted) + 1
        targets = lengths[:, None] + columns
        tokens.scatter_(1, targets, chosen)  # junk behind `lengths` is overwritten before it is read
        log_probs.scatter_(1, targets, chosen_log_probs)
        lengths = lengths + committed

        # the next draft, before the one transfer to the host that tells what happened
        draft, draft_lengths = _clipped(drafter.propose(tokens, lengths), lengths, rules.max_len)
        drafted_host = draft_lengths_host
        accepted_host, committed_host, finished_host, draft_lengths_host, lengths_host = torch.stack(
            [torch.minimum(accepted, committed), committed, finished.long(), draft_lengths, lengths]
        ).tolist()
        remaining = []
        for row, sentence in enumerate(ids):
            trace = traces[sentence]
            trace.drafted.append(drafted_host[row])
            trace.accepted.append(accepted_host[row])
            trace.committed.append(committed_host[row])
            if finished_host[row]:
                output = slice(1, lengths_host[row])
                done[sentence] = Decoded(
                    tokens[row, output].clone(),
                    log_probs[row, output].clone(),
                    trace,
                    drafts[sentence] if keep_drafts else None,
                )
            else:
                remaining.append(row)
        if len(remaining) < len(ids):  # finished rows leave the batch
            ids = [ids[row] for row in remaining]
            if not ids:
                break
            rows = torch.tensor(remaining, device=device)
            tokens, log_probs, lengths = tokens[rows], log_probs[rows], lengths[rows]
            draft, draft_lengths = draft[rows], draft_lengths[rows]
            lengths_host = [lengths_host[row] for row in remaining]
            draft_lengths_host = [draft_lengths_host[row] for row in remaining]
            rules = rules.keep(rows)
            verifier.keep(rows)
            drafter.keep(rows)
    return [sentence for sentence in done if sentence is not None]


def _clipped(proposal: tuple[Tensor, Tensor], lengths: Tensor, max_len: int) -> tuple[Tensor, Tensor]:
    """Cut drafts so that no block reads or predicts behind the last position, where EOS is forced."""
    draft, draft_lengths = proposal
    return draft, torch.minimum(draft_lengths, (max_len + 1 - lengths).clamp(min=0))


def _widened(matrix: Tensor, width: int, fill: float) -> Tensor:
    wider = matrix.new_full((matrix.size(0), width), fill)
    wider[:, : matrix.size(1)] = matrix
    return wider
