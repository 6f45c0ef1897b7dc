"""The outputs of a batch while they grow: tokens, scores and counters; rows leave when their sentence has ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_aggdec.decoding.stats import SentenceStats


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


class Outputs:
    """Starts with every row holding the decoder's first input alone."""

    def __init__(self, first_tokens: Tensor, max_len: int, pad: int, keep_drafts: bool) -> None:
        """
        Args:
            first_tokens: the decoder's first input, B.
            max_len: the longest output, its EOS not counted.
            pad: fills what is not yet written.
            keep_drafts: return the drafts too.
        """
        batch_size, device = first_tokens.size(0), first_tokens.device
        self.tokens = torch.full((batch_size, max_len + 2), pad, dtype=torch.long, device=device)
        """B x T: the first input, then the output; junk behind `lengths`"""
        self.tokens[:, 0] = first_tokens
        self.lengths = torch.ones(batch_size, dtype=torch.long, device=device)
        """B, the first input counted"""
        self.lengths_host = [1] * batch_size
        """`lengths` as the host knows them since `settle`"""
        self.rows = list(range(batch_size))
        """which sentence each remaining row is"""
        self._log_probs = torch.zeros(batch_size, max_len + 2, device=device)
        self._pad = pad
        self._stats = [SentenceStats() for _ in range(batch_size)]
        self._drafts: list[list[Tensor]] | None = [[] for _ in range(batch_size)] if keep_drafts else None
        self._done: list[Decoded | None] = [None] * batch_size

    def reserve(self, end: int) -> None:
        """Make room for positions below `end`."""
        if self.tokens.size(1) < end:
            self.tokens = _widened(self.tokens, end, self._pad)
            self._log_probs = _widened(self._log_probs, end, 0.0)

    def place(self, block: Tensor) -> None:
        """Write a block, B x W, over each row's last token and what lies behind `lengths`."""
        targets = self.lengths[:, None] - 1 + torch.arange(block.size(1), device=block.device)
        self.tokens.scatter_(1, targets, block)

    def append(self, tokens: Tensor, log_probs: Tensor, committed: Tensor) -> None:
        """Write B x W tokens behind each row, of which the first `committed`, B, count."""
        targets = self.lengths[:, None] + torch.arange(tokens.size(1), device=tokens.device)
        self.tokens.scatter_(1, targets, tokens)  # junk behind `lengths` is overwritten before it is read
        self._log_probs.scatter_(1, targets, log_probs)
        self.lengths = self.lengths + committed

    def settle(
        self,
        draft: Tensor,
        drafted: Sequence[int],
        accepted: Sequence[int],
        committed: Sequence[int],
        finished: Sequence[int],
    ) -> list[int]:
        """Count an iteration and let finished rows go.

        Args:
            draft: what was drafted, B x K.
            drafted, accepted, committed: number of tokens, a row.
            finished: whether a row has ended.

        Returns:
            the numbers of the rows that remain, in their new order: the last ones take the places of those that left,
            so that the fewest rows move.
        """
        remaining = []
        for row, sentence in enumerate(self.rows):
            self.lengths_host[row] += committed[row]
            stats = self._stats[sentence]
            stats.drafted.append(drafted[row])
            stats.accepted.append(accepted[row])
            stats.committed.append(committed[row])
            if self._drafts is not None:
                self._drafts[sentence].append(draft[row, : drafted[row]].clone())
            if finished[row]:
                output = slice(1, self.lengths_host[row])
                drafts = None if self._drafts is None else self._drafts[sentence]
                self._done[sentence] = Decoded(
                    self.tokens[row, output].clone(), self._log_probs[row, output].clone(), stats, drafts
                )
            else:
                remaining.append(row)
        if len(remaining) < len(self.rows):
            movers = iter([row for row in remaining if row >= len(remaining)])
            remaining = [next(movers) if finished[row] else row for row in range(len(remaining))]
            self._keep(remaining)
        return remaining

    def _keep(self, remaining: list[int]) -> None:
        self.rows = [self.rows[row] for row in remaining]
        self.lengths_host = [self.lengths_host[row] for row in remaining]
        index = torch.tensor(remaining, dtype=torch.long, device=self.tokens.device)
        self.tokens, self._log_probs = self.tokens[index], self._log_probs[index]
        self.lengths = self.lengths[index]

    def finished(self) -> list[Decoded]:
        """One entry a sentence, in the order of the batch."""
        return [sentence for sentence in self._done if sentence is not None]


def _widened(matrix: Tensor, width: int, fill: float) -> Tensor:
    wider = matrix.new_full((matrix.size(0), width), fill)
    wider[:, : matrix.size(1)] = matrix
    return wider
