"""Blockwise parallel decoding: the verifier's own further heads draft (papers/004 §3 and §4).

One forward pass of the verifier both verifies the last draft and proposes the next (§4). The pass reads, in each row,
the last committed token and the draft, and at each of these positions head 1 says which token comes next and the heads
2 to k propose the tokens after it. Where the accepted part of the draft ends, head 1's token is committed, as always in
the loop, and the proposals made there are the next draft. The first pass reads the start symbol alone: an output of m
tokens in blocks of k-hat takes m / k-hat + 1 passes.

The paper counts head 1's token as the first of the next block, which passes by definition: its block of k is a draft of
k - 1 here.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import best_tokens
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter


class ProposingModel(Protocol):
    """A `roles.Verifier` with proposal heads, which remembers its last forward pass."""

    def proposals(self, lengths: Tensor, last_head: int) -> Tensor | None:
        """Logits of the heads 2 to `last_head` at the position where head 1 chose each row's last token.

        `lengths` counts each row's tokens, the start symbol included, B. Returns B x (`last_head` - 1) x V, which the
        caller may overwrite; None before the first pass.
        """


class HeadDrafter(Drafter):
    """A `roles.Drafter`: the best token of each head, each for itself (the predict substep of §3)."""

    def __init__(self, model: ProposingModel, heads: int, eos: int, never: Sequence[int]) -> None:
        """Draft with this many heads, head 1 included, of the verifier that the loop has; the loop drops its rows.

        A draft ends with `eos` and contains no token of `never`, such as padding.
        """
        self.block_size = heads - 1
        self._model = model
        self._eos = eos
        self._never = never

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`; drafts end with the first EOS."""
        size = min(self.block_size, max(longest))
        logits = None if size == 0 else self._model.proposals(outputs.lengths, size + 1)
        if logits is None:
            return Draft.none(len(outputs.rows), outputs.device)
        tokens = best_tokens(logits, self._never)
        return Draft.up_to_end(tokens, self._eos)

    def keep(self, rows: Tensor) -> None:
        """The verifier has forgotten the other rows already."""
