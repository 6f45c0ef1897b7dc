"""Generalized Aggressive Decoding: a non-autoregressive model drafts a block of k tokens at once (papers/000 §3.2)."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.acceptance import accepted_beginning
from fairseq_aggdec.decoding.loop import Drafter
from fairseq_aggdec.decoding.outputs import Decoded, Outputs
from fairseq_aggdec.decoding.search_rules import SearchRules, best


class BlockModel(Protocol):
    """The drafter's network, started with a batch of sources."""

    max_positions: int
    """how many positions it has, the start symbol's included"""

    def draft(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        """Predict a block of tokens after each row's prefix, all at once.

        Args:
            tokens: B x T, the start symbol, then the output; junk behind `lengths`. What a row held at the last call
                it still holds.
            lengths: B, the start symbol counted.
            block_size: k.
            lengths_host: `lengths`, on the host.

        Returns:
            B x k tokens, without padding and BOS: the i-th (from 0) for position `lengths` + i.
        """

    def score(self, tokens: Tensor, lengths: Tensor, block_size: int, lengths_host: Sequence[int]) -> Tensor:
        """What `draft` chooses from; the arguments are the same.

        Returns:
            logits, B x k x V, which the caller may overwrite; where a model's tokens depend on each other, after the
            drafted ones before.
        """

    def unread(self, lengths_host: Sequence[int]) -> int:
        """How many tokens of all rows the next draft has to read first."""

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class BlockDrafter(Drafter):
    """A `loop.Drafter`: a block of a model's own choice (the draft step of §3.2)."""

    def __init__(self, model: BlockModel, block_size: int, eos: int) -> None:
        """
        Args:
            model: ready to draft for this batch.
            block_size: k, at most the one that the model was trained for.
            eos: what follows it is cut off.
        """
        self.block_size: int | None = block_size
        self._model = model
        self._eos = eos

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS or at the model's last position."""
        known = lengths.tolist() if lengths_host is None else lengths_host
        assert self.block_size is not None
        draft = self._model.draft(tokens, lengths, self.block_size, known)
        draft_lengths = lengths_to_end(draft, self._eos)
        return draft, torch.minimum(draft_lengths, (self._model.max_positions - lengths).clamp(min=0))

    def unread(self, lengths_host: Sequence[int]) -> int:
        return self._model.unread(lengths_host)

    def keep(self, rows: Tensor) -> None:
        self._model.keep(rows)


def best_tokens(logits: Tensor, never: Sequence[int]) -> Tensor:
    """The best token at each position, each for itself.

    Args:
        logits: ... x V; overwritten.
        never: tokens that are not taken, such as padding.

    Returns:
        ...
    """
    exclude(logits, never)
    return best(logits)[1]


def exclude(logits: Tensor, never: Sequence[int]) -> None:
    """Set the scores (... x V) of tokens that are not taken to minus infinity, in place."""
    for token in never:
        logits[..., token].fill_(-torch.inf)


def lengths_to_end(draft: Tensor, eos: int) -> Tensor:
    """How many tokens of a draft (B x K, K at least 1) count: those up to the first EOS, B."""
    if draft.size(0) == 1 and draft.device.type == "cpu":  # a list is searched faster than a tensor
        symbols = draft[0].tolist()
        return torch.tensor([symbols.index(eos) + 1 if eos in symbols else len(symbols)])
    return 1 + accepted_beginning(draft[:, :-1] != eos)


def draft_alone(
    model: BlockModel,
    block_size: int,
    rules: SearchRules,
    first_tokens: Tensor,
    keep_drafts: bool = False,
    temperature: float = 1.0,
) -> list[Decoded]:
    """Decode without a verifier: the draft is the output, block after block (papers/000 Table 5, "NAR drafter").

    The search rules hold for the drafter's scores; n-grams are blocked against the tokens that it prefers by itself.

    Args:
        model: ready to draft for this batch.
        block_size: k.
        rules: what may be chosen, for this batch; the longest output fits into the model's positions.
        first_tokens: the decoder's first input, B.
        keep_drafts: return the drafts too.
        temperature: divides the drafter's logits.

    Returns:
        one `Decoded` a row, in the rows' order; log-probabilities are the drafter's.
    """
    outputs = Outputs(first_tokens, rules.max_len, rules.pad, keep_drafts)
    columns = torch.arange(block_size, device=first_tokens.device)
    while outputs.rows:
        longest, shortest = max(outputs.lengths_host), min(outputs.lengths_host)
        logits = model.score(outputs.tokens, outputs.lengths, block_size, outputs.lengths_host)  # B x k x V
        outputs.reserve(longest + block_size)
        outputs.tokens.scatter_(1, outputs.lengths[:, None] + columns, logits.argmax(dim=-1))
        end = longest + block_size - 1
        if temperature != 1.0:
            logits = logits / temperature
        choices = rules.choose(logits, outputs.lengths - 1, outputs.tokens[:, :end], shortest - 1, end - 1)
        is_end = choices.tokens == rules.eos
        committed = 1 + accepted_beginning(~is_end[:, :-1])
        outputs.append(choices.tokens, choices.log_probs, committed)
        host = torch.stack([committed, is_end.any(dim=1).long()]).tolist()
        batch_size = len(outputs.rows)
        remaining = outputs.settle(choices.tokens, host[0], host[0], *host)
        if remaining and len(remaining) < batch_size:
            rows = torch.tensor(remaining, device=first_tokens.device)
            rules = rules.keep(rows)
            model.keep(rows)
    return outputs.finished()
