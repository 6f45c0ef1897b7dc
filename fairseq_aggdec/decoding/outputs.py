"""The outputs of a batch while they grow: tokens, scores and counters. A row leaves when its sentence has ended."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.tokens import (
    HOST,
    Block,
    Decoded,
    Draft,
    Outcome,
    RowSelection,
)
from fairseq_aggdec.decoding.verification import Verdict


def fewest_moves(staying: Sequence[int]) -> list[int]:
    """Order the rows that stay so that the fewest move: the last rows take the places of those that leave."""
    count = len(staying)
    places = set(staying)
    movers = iter([row for row in staying if row >= count])
    return [row if row in places else next(movers) for row in range(count)]


class Outputs:
    """The growing outputs of B sentences, on the host.

    Each row starts with the decoder's first input and the tokens that all rows are forced to begin with. The verifier
    reads these before the first draft, in the same pass.
    """

    def __init__(
        self,
        first_tokens: Tensor,
        rules: SearchRules,
        keep_drafts: bool = False,
        device: torch.device = HOST,
    ) -> None:
        """Start from the decoder's first input, B, on the host; `rules` give the longest output and special symbols."""
        batch_size = first_tokens.size(0)
        self.device = device
        """the verifier's device"""
        # B x P tokens; none once the verifier has read them
        self._forced = rules.common_prefix or [()] * batch_size
        self.texts = [
            [first, *prefix]
            for first, prefix in zip(first_tokens.tolist(), self._forced, strict=True)
        ]
        """the tokens of each row: the first input, then the output"""
        self.rows = list(range(batch_size))
        """which sentence of the batch each remaining row is"""
        self.are_new = True
        """whether nothing is committed but the forced beginning"""
        self._rules = rules
        self._log_probs: list[list[float]] = [[] for _ in range(batch_size)]
        self._stats = [SentenceStats() for _ in range(batch_size)]
        self._drafts: list[list[Tensor]] | None = (
            [[] for _ in range(batch_size)] if keep_drafts else None
        )
        # output and log-probabilities, by sentence
        self._done: dict[int, tuple[list[int], list[float]]] = {}

    @property
    def known_lengths(self) -> list[int]:
        """The length of each text, the first input counted."""
        return [len(text) for text in self.texts]

    def room(self) -> list[int]:
        """The longest draft of each row; a block must end at the last position, where EOS is forced."""
        return [self._rules.max_len + 1 - len(text) for text in self.texts]

    def fitting(self, draft: Draft, limits: Sequence[int]) -> Draft:
        """Cut a draft to the limits and to the room left, and clamp its symbols to the verifier's vocabulary."""
        if draft.tokens.size(1) == 0:
            return draft
        lengths = map(min, limits, self.room())
        draft = draft.cut(list(lengths))
        if self._rules.symbols is None:
            return draft
        last_symbol = self._rules.symbols - 1
        return replace(draft, tokens=draft.tokens.clamp(0, last_symbol))

    def unread(self, draft: Draft) -> Draft:
        """The tokens that the verifier has not read yet, after each row's last one: forced tokens, then a draft."""
        return draft.after(self._forced) if self._forced[0] else draft

    def block(self, draft: Draft) -> Block:
        """The block that the verifier reads next: each row's last token and its draft, see `unread`."""
        forced = len(self._forced[0])
        starts = [len(text) - 1 - forced for text in self.texts]
        lasts = [text[start] for text, start in zip(self.texts, starts, strict=True)]
        widths = None
        if draft.lengths is not None:
            widths = [1 + length for length in draft.lengths]
        return Block.of_draft(lasts, starts, draft.tokens, widths, self.device)

    def commit(self, draft: Draft, verdict: Verdict) -> Outcome:
        """Append the accepted draft tokens and the verifier's next token to each row; ended rows leave.

        `draft`: see `unread`. Forced tokens count as committed, but neither as drafted nor as accepted.
        """
        self.are_new = False
        forced = len(self._forced[0])
        if forced:
            # the verdict commits forced tokens again, with their scores
            self.texts = [text[:1] for text in self.texts]
            self._forced = [()]
        eos = self._rules.eos
        passed = verdict.passed
        tokens = verdict.tokens
        drafted = [width - forced for width in verdict.drafted]
        accepted: list[int] = []
        committed: list[int] = []
        end = 0
        for row, width in enumerate(verdict.widths):
            # up to the first token that does not pass, or EOS
            first = end
            end += width
            last = first
            while last < end - 1 and passed[last] and tokens[last] != eos:
                last += 1
            self.texts[row] += tokens[first : last + 1]
            self._log_probs[row] += verdict.log_probs[first : last + 1]

            # what is counted of it
            committed.append(last + 1 - first)
            accepted.append(max(0, last - first + passed[last] - forced))
            self._count(row, drafted[row], accepted[row], committed[row])
            if self._drafts is not None:
                self._drafts[self.rows[row]].append(
                    draft.tokens[row, forced : forced + drafted[row]].clone()
                )
        return Outcome(drafted, accepted, committed, self._remove_ended())

    def finished(self) -> list[Decoded]:
        """The finished sentences, in the order of the batch."""
        drafts: Sequence[list[Tensor] | None] = self._drafts or [None] * len(
            self._stats
        )
        texts = [self._done[sentence] for sentence in range(len(self._done))]
        return [
            Decoded(tokens, log_probs, stats, of_sentence)
            for (tokens, log_probs), stats, of_sentence in zip(
                texts, self._stats, drafts, strict=True
            )
        ]

    def _count(
        self,
        row: int,
        drafted: int,
        accepted: int,
        committed: int,
    ) -> None:
        stats = self._stats[self.rows[row]]
        stats.drafted.append(drafted)
        stats.accepted.append(accepted)
        stats.committed.append(committed)

    def _remove_ended(self) -> RowSelection | None:
        """Finish the rows that have ended. Return the others in their new order; None where no row has ended."""
        eos = self._rules.eos
        staying = [row for row, text in enumerate(self.texts) if text[-1] != eos]
        if len(staying) == len(self.rows):
            return None
        for row in set(range(len(self.rows))) - set(staying):
            output = self.texts[row][1:]
            self._done[self.rows[row]] = (output, self._log_probs[row])
        order = fewest_moves(staying)
        self.rows = [self.rows[row] for row in order]
        self.texts = [self.texts[row] for row in order]
        self._log_probs = [self._log_probs[row] for row in order]
        return RowSelection(order, self.device)
