"""Blockwise parallel decoding: the verifier's proposal heads draft (papers/004 §3 and §4).

One forward pass of the verifier both verifies the last draft and proposes the next (§4). In each row the pass reads the
last committed token and the draft; at each of these positions head 1 predicts the next token and heads 2 to k propose
the tokens after it. Where the accepted part of the draft ends, head 1's token is committed, and the proposals made
there are the next draft. The first pass reads the start symbol alone: an output of m tokens in blocks of k-hat takes
m / k-hat + 1 passes.

The paper counts head 1's token as the first token of the next block: its block of k is a draft of k - 1 here.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, RowSelection


class ProposingModel(Protocol):
    """A `roles.Verifier` with proposal heads that stores the features of its last forward pass."""

    sync_is_costly: bool
    """whether the host waits for the device when it reads a draft"""

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        """The best tokens of the heads 2 to `last_head` at the position where head 1 chose each row's last token.

        `lengths` counts each row's tokens, the start symbol included, B. Returns B x (`last_head` - 1) tokens, none of
        them padding or BOS; None before the first pass.
        """


class HeadDrafter(Drafter):
    """A `roles.Drafter` that drafts the best token of each head (the predict substep of §3)."""

    def __init__(self, model: ProposingModel, heads: int, eos: int) -> None:
        """Draft with `heads` heads of the verifier, head 1 included; a draft ends with its first `eos`."""
        self.block_size = heads - 1
        self._model = model
        self._eos = eos

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        size = min(self.block_size, max(limits))
        tokens = (
            None if size == 0 else self._model.propose(outputs.known_lengths, size + 1)
        )
        if tokens is None:
            return Draft.none(len(outputs.rows))
        return (
            Draft.on_device(tokens, self._eos)
            if self._model.sync_is_costly
            else Draft.up_to_end(tokens, self._eos)
        )

    def keep(self, order: RowSelection) -> None:
        """Do nothing: the loop drops the rows of the verifier, which is the model here."""
