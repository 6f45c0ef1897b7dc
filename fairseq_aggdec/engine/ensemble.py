"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Block, Verifier


class EnsembleVerifier(Verifier, TreeVerifier):
    """A `roles.Verifier`, and a `TreeVerifier` if its members are; yields log-probabilities of whole blocks."""

    def __init__(self, members: Sequence[Any]) -> None:
        """`members`: verifiers that have started the same batch."""
        self._members = members

    def score(self, block: Block) -> Iterator[Tensor]:
        yield _mean(member.score(block) for member in self._members)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        yield _mean(member.score_tree(block) for member in self._members)

    def keep(self, rows: Tensor) -> None:
        for member in self._members:
            member.keep(rows)


def _mean(members: Iterable[Iterator[Tensor]]) -> Tensor:
    """Log-probabilities of the mean of all members' probabilities, given their scores of a block in chunks."""
    log_probs = [torch.cat(list(chunks)).float().log_softmax(dim=-1) for chunks in members]
    return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))
