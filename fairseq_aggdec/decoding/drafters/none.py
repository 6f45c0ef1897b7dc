"""Greedy decoding as a drafter without drafts."""

from collections.abc import Sequence

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, RowSelection


class NoDrafter(Drafter):
    """A `roles.Drafter` that drafts nothing: every block is the last token alone."""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        return Draft.none(len(outputs.rows))

    def keep(self, order: RowSelection) -> None:
        pass
