"""The outputs of a batch while they grow: tokens, scores and counters; rows leave when their sentence has ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block, Draft
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.verification import Verdict


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


class Outputs:
    """Starts with every row holding the decoder's first input alone."""

    def __init__(self, first_tokens: Tensor, rules: SearchRules, keep_drafts: bool = False) -> None:
        """Of the decoder's first input, B; `rules` have the longest output and special symbols."""
        batch_size, device = first_tokens.size(0), first_tokens.device
        self.tokens = torch.full((batch_size, rules.max_len + 2), rules.pad, dtype=torch.long, device=device)
        """B x T: the first input, then the output; junk behind `lengths`"""
        self.tokens[:, 0] = first_tokens
        self.lengths = torch.ones(batch_size, dtype=torch.long, device=device)
        """B, the first input counted"""
        self.texts = [[token] for token in first_tokens.tolist()]
        """the tokens of each row, on the host"""
        self.rows = list(range(batch_size))
        """which sentence each remaining row is"""
        self.failures = [0] * batch_size
        """how many of each row's latest drafts in a row had no token accepted"""
        self._rules = rules
        self._log_probs = torch.zeros(batch_size, rules.max_len + 2, device=device)
        self._stats = [SentenceStats() for _ in range(batch_size)]
        self._drafts: list[list[Tensor]] | None = [[] for _ in range(batch_size)] if keep_drafts else None
        self._done: list[Decoded | None] = [None] * batch_size

    @property
    def known_lengths(self) -> list[int]:
        """`lengths`, on the host."""
        return [len(text) for text in self.texts]

    def room(self) -> list[int]:
        """The longest draft of each row: no block reads or predicts behind the last position, where EOS is forced."""
        return [self._rules.max_len + 1 - len(text) for text in self.texts]

    def fitting(self, draft: Draft, longest: Sequence[int]) -> Draft:
        """What can be verified of a draft: no more than is wanted and there is room for, in the verifier's symbols.

        A symbol that the verifier does not know becomes one that it knows, which passes if it is right.
        """
        draft = draft.cut([min(limits) for limits in zip(longest, self.room(), strict=True)])
        if self._rules.symbols is None:
            return draft
        return replace(draft, tokens=draft.tokens.clamp(0, self._rules.symbols - 1))

    def block(self, draft: Draft) -> Block:
        """Each row's last token and its draft."""
        starts, known = self.lengths - 1, self.known_lengths
        tokens = torch.cat([self.tokens.gather(1, starts[:, None]), draft.tokens], dim=1)  # B x W
        self._reserve(max(known) + tokens.size(1))
        widths = None if draft.known is None else [1 + length for length in draft.known]
        return Block.of(tokens, starts, [length - 1 for length in known], widths)

    def sequence(self, block: Block, with_draft: bool) -> Tensor:
        """The decoder's inputs up to a block's end, B x L; junk behind each row's last token, or behind its draft."""
        if with_draft:
            targets = block.starts[:, None] + torch.arange(block.tokens.size(1), device=block.starts.device)
            self.tokens.scatter_(1, targets, block.tokens)
        return self.tokens[:, : block.last_start + block.tokens.size(1)]

    def commit(self, draft: Draft, verdict: Verdict, last: Tensor) -> Outcome:
        """Append what passed of a draft and the verifier's own token behind it; rows that have ended leave.

        This is the iteration's one transfer to the host. `last` is the column of the last token that becomes output, B.
        """
        committed = last + 1
        accepted = last + verdict.passed.gather(1, last[:, None]).squeeze(1)
        self._append(verdict, committed)
        counts = torch.stack([draft.lengths, accepted, committed], dim=1)
        host = torch.cat([counts, verdict.tokens], dim=1).tolist()
        for row, (drafted, passed, added, *tokens) in enumerate(host):
            self.texts[row] += tokens[:added]
            self._count(row, drafted, passed, added)
            if self._drafts is not None:
                self._drafts[self.rows[row]].append(draft.tokens[row, :drafted].clone())
        drafts, accepts, commits = (list(column) for column in zip(*(row[:3] for row in host), strict=True))
        return Outcome(drafts, accepts, commits, self._let_go())

    def finished(self) -> list[Decoded]:
        """One entry a sentence, in the order of the batch."""
        return [sentence for sentence in self._done if sentence is not None]

    def _append(self, verdict: Verdict, committed: Tensor) -> None:
        """Write the first tokens of each row's verdict behind its output, on the device; `committed`: how many, B."""
        width = verdict.tokens.size(1)
        targets = self.lengths[:, None] + torch.arange(width, device=committed.device)
        self._reserve(width + max(self.known_lengths))
        self.tokens.scatter_(1, targets, verdict.tokens)  # junk behind `lengths` is overwritten before it is read
        self._log_probs.scatter_(1, targets, verdict.log_probs)
        self.lengths = self.lengths + committed

    def _count(self, row: int, drafted: int, accepted: int, committed: int) -> None:
        stats = self._stats[self.rows[row]]
        stats.drafted.append(drafted)
        stats.accepted.append(accepted)
        stats.committed.append(committed)
        if drafted > 0:
            self.failures[row] = 0 if accepted > 0 else self.failures[row] + 1

    def _let_go(self) -> Tensor | None:
        """Finish the rows that have ended; the others in their new order, None where none has."""
        staying = [row for row, text in enumerate(self.texts) if text[-1] != self._rules.eos]
        if len(staying) == len(self.rows):
            return None
        for row in set(range(len(self.rows))) - set(staying):
            self._finish(row)
        return self._keep(staying)

    def _finish(self, row: int) -> None:
        sentence, output = self.rows[row], slice(1, len(self.texts[row]))
        drafts = None if self._drafts is None else self._drafts[sentence]
        self._done[sentence] = Decoded(
            self.tokens[row, output].clone(), self._log_probs[row, output].clone(), self._stats[sentence], drafts
        )

    def _keep(self, staying: list[int]) -> Tensor:
        """Drop all rows but these; the last ones take the places of those that left, so that the fewest rows move."""
        places = set(staying)
        movers = iter([row for row in staying if row >= len(staying)])
        order = [row if row in places else next(movers) for row in range(len(staying))]
        self.rows = [self.rows[row] for row in order]
        self.texts = [self.texts[row] for row in order]
        self.failures = [self.failures[row] for row in order]
        remaining = torch.tensor(order, dtype=torch.long, device=self.tokens.device)
        self.tokens, self._log_probs = self.tokens[remaining], self._log_probs[remaining]
        self.lengths = self.lengths[remaining]
        return remaining

    def _reserve(self, end: int) -> None:
        """Make room for positions below `end`."""
        if self.tokens.size(1) < end:
            missing = (0, end - self.tokens.size(1))
            self.tokens = F.pad(self.tokens, missing, value=self._rules.pad)
            self._log_probs = F.pad(self._log_probs, missing)
