"""Generalized Aggressive Decoding: a non-autoregressive model drafts a block of k tokens at once (papers/000 §3.2)."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter
from fairseq_aggdec.decoding.search_rules import best


class BlockModel(Protocol):
    """The drafter's network, started with a batch of sources."""

    max_positions: int
    """how many positions it has, the start symbol's included"""

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """Predict a block of tokens after each row's prefix, all at once.

        Args:
            texts: of B rows the start symbol, then the output. What a row held at the last call it still holds.
            block_size: k.

        Returns:
            B x k tokens, without padding and BOS: those that follow the texts.
        """

    def score(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """What `draft` chooses from; the arguments are the same.

        Returns:
            logits, B x k x V, which the caller may overwrite; where a model's tokens depend on each other, after the
            drafted ones before.
        """

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these; the next call has them in this order."""


class BlockDrafter(Drafter):
    """A `roles.Drafter`: a block of a model's own choice (the draft step of §3.2)."""

    def __init__(self, model: BlockModel, block_size: int, eos: int) -> None:
        """A block of k tokens, at most what the model was trained for; what follows an `eos` is cut off."""
        self.block_size = block_size
        self._model = model
        self._eos = eos

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS or at the model's last position."""
        tokens = self._model.draft(outputs.texts, min(self.block_size, max(longest)))
        draft = Draft.up_to_end(tokens, self._eos)
        return draft.cut([max(0, self._model.max_positions - len(text)) for text in outputs.texts])

    def keep(self, rows: Tensor) -> None:
        self._model.keep(rows)


def best_tokens(logits: Tensor, never: Sequence[int]) -> Tensor:
    """The best token at each position, each for itself: ... x V, overwritten, -> ...; `never` one such as padding."""
    exclude(logits, never)
    return best(logits)[1]


def exclude(logits: Tensor, never: Sequence[int]) -> None:
    """Set the scores (... x V) of tokens that are not taken to minus infinity, in place."""
    for token in never:
        logits[..., token].fill_(-torch.inf)
