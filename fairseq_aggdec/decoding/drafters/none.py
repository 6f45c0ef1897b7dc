"""Greedy decoding as a drafter: every block is the last token alone."""

from collections.abc import Sequence

from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter


class NoDrafter(Drafter):
    """A `roles.Drafter` that has no idea."""

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        return Draft.none(len(outputs.rows), outputs.device)

    def keep(self, rows: Tensor) -> None:
        pass
