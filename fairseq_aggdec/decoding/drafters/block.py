"""A model drafts k tokens: a non-autoregressive one at once (papers/000 §3.2), or an ordinary one, token by token."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, RowSelection


class BlockModel(Protocol):
    """The drafter's network, after it has encoded a batch of sources."""

    max_positions: int
    """positions, the start symbol's included"""
    sync_is_costly: bool
    """whether the host waits for the device when it reads a draft"""

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        """Predict the next k = `block_size` tokens of each row, B x k, never padding; fewer where all rows have ended.

        `texts`: the start symbol and the output of each row; each extends that row's text of the last call.
        """

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""


class BlockDrafter(Drafter):
    """A `roles.Drafter` that drafts blocks by a model (the draft step of §3.2)."""

    def __init__(self, model: BlockModel, block_size: int, eos: int) -> None:
        """Draft k tokens, of a `nar_drafter` at most as in the model's training; a draft ends with its first `eos`."""
        self.block_size = block_size
        self.model = model
        self._eos = eos

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS or at the model's last position."""
        tokens = self.model.draft(outputs.texts, min(self.block_size, max(limits)))
        draft = (
            Draft.on_device(tokens, self._eos)
            if self.model.sync_is_costly
            else Draft.up_to_end(tokens, self._eos)
        )
        return draft.cut(
            [max(0, self.model.max_positions - len(text)) for text in outputs.texts]
        )

    def keep(self, order: RowSelection) -> None:
        self.model.keep(order)
