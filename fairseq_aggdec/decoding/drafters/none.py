"""Greedy decoding as a drafter without drafts."""

from collections.abc import Sequence

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter


class NoDrafter(Drafter):
    """A `roles.Drafter` that drafts nothing: every block is the last token alone."""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        return Draft.none(len(outputs.rows), outputs.device)

    def keep(self, rows: Tensor) -> None:
        pass
