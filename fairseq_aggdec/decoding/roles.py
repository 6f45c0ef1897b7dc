"""The roles of the decoding loop.

Drafter: proposes draft tokens, a guess at the verifier's next tokens. Verifier: the model that is decoded; its
greedy output is the reference. Draft schedule: decides how many draft tokens are worth verifying. Bifurcation: the
first draft token that does not pass; the verifier's token is committed there. Bonus token: the verifier's token
after a draft that passed as a whole.
"""

import sys
from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Draft, Outcome, RowSelection


class Drafter(Protocol):
    """Guesses the verifier's next tokens."""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        """Draft a continuation of every row.

        `limits`: the longest draft wanted for each row, not all 0; the loop cuts longer drafts.
        """

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""


class Verifier(Protocol):
    """The model that is decoded."""

    def verify(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        """Read a block after each row's committed tokens, overwrite the cache from there on, and choose.

        Args:
            block: the tokens to read.
            rules: the search rules of this batch.
            ranks: count the `ranks` of draft tokens up to this; 0: draft tokens are not judged.
            sequence: the decoder's inputs up to the end of the block, B x L, for the n-gram rule; None without it.
        """

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""


class DraftSchedule(Protocol):
    """Decides how many draft tokens of a batch are verified. A lossless output does not depend on it."""

    def limits(self, outputs: Outputs) -> list[int]:
        """The longest draft to make for each row; 0 for no draft, `sys.maxsize` for any length."""

    def trim(self, draft: Draft) -> Draft:
        """Cut a draft to the tokens that are worth verifying."""

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        """Learn from the outcome of a draft."""


class VerifyAll(DraftSchedule):
    """The papers' behaviour: every draft token is verified."""

    def limits(self, outputs: Outputs) -> list[int]:
        return [sys.maxsize] * len(outputs.rows)

    def trim(self, draft: Draft) -> Draft:
        return draft

    def learn(self, draft: Draft, outcome: Outcome) -> None:
        return None


VERIFY_ALL = VerifyAll()
