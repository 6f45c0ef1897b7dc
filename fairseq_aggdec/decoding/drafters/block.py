"""Generalized Aggressive Decoding: a non-autoregressive model drafts a block of k tokens at once (papers/000 §3.2)."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter
from fairseq_aggdec.decoding.search_rules import best


class BlockModel(Protocol):
    """The drafter's network, after it has encoded a batch of sources."""

    max_positions: int
    """number of positions, the start symbol's included"""

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """Predict the next k tokens of each row, all at once.

        Args:
            texts: the start symbol and the output of each of B rows; each extends that row's text of the last call.
            block_size: k.

        Returns:
            B x k tokens, never padding or BOS.
        """

    def score(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """The logits from which `draft` chooses, B x k x V; the caller may overwrite them.

        Where tokens of a block depend on each other, each position is conditioned on the draft tokens before it.
        """

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""


class BlockDrafter(Drafter):
    """A `roles.Drafter` that drafts blocks by a model (the draft step of §3.2)."""

    def __init__(self, model: BlockModel, block_size: int, eos: int) -> None:
        """Draft k tokens at once, at most as in the model's training; a draft ends with its first `eos`."""
        self.block_size = block_size
        self._model = model
        self._eos = eos

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS or at the model's last position."""
        tokens = self._model.draft(outputs.texts, min(self.block_size, max(limits)))
        draft = Draft.up_to_end(tokens, self._eos)
        return draft.cut([max(0, self._model.max_positions - len(text)) for text in outputs.texts])

    def keep(self, rows: Tensor) -> None:
        self._model.keep(rows)


def best_tokens(logits: Tensor, never: Sequence[int]) -> Tensor:
    """The best token at each position except those of `never`, ... x V -> ...; parts of the logits are overwritten."""
    exclude(logits, never)
    return best(logits)[1]


def exclude(logits: Tensor, never: Sequence[int]) -> None:
    """Set the scores (... x V) of the tokens of `never` to minus infinity, in place."""
    for token in never:
        logits[..., token].fill_(-torch.inf)
