"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import (
    Entries,
    TreeBlock,
    TreeVerifier,
)
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, RowSelection
from fairseq_aggdec.engine.plain.choice import (
    Choice,
    choose_block,
    entries_behind,
)


class EnsembleVerifier(Verifier, TreeVerifier):
    """A `roles.Verifier`, and a `TreeVerifier` if its members are."""

    def __init__(self, members: Sequence[Any], choice: Choice) -> None:
        """`members`: verifiers that have started the same batch; `choice`: finds the highest mean scores."""
        self._members = members
        self._choice = choice

    def verify(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        scores = _mean(member.score(block) for member in self._members)
        return choose_block([scores], self._choice, block, rules, ranks, sequence)

    def verify_tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        scores = _mean(member.score_tree(block) for member in self._members)
        return entries_behind([scores], self._choice, block, rules, count, sequences)

    def keep(self, order: RowSelection) -> None:
        for member in self._members:
            member.keep(order)


def _mean(members: Iterable[Iterator[Tensor]]) -> Tensor:
    """Log-probabilities of the mean of all members' probabilities, given their scores of a block in chunks."""
    log_probs = [
        torch.cat(list(chunks)).float().log_softmax(dim=-1) for chunks in members
    ]
    return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))
