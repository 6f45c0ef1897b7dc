"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Block, Verifier


class EnsembleVerifier(Verifier, TreeVerifier):
    """A `roles.Verifier`, and a `decoding.beam.roles.TreeVerifier` where its members are, over several."""

    def __init__(self, members: Sequence[Any]) -> None:
        """
        Args:
            members: the verifiers, started and kept in step.
        """
        self._members = members

    def score(self, block: Block) -> Iterator[Tensor]:
        """See `roles.Verifier.score`; yields log-probabilities of the whole block."""
        yield _mean(member.score(block) for member in self._members)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """See `decoding.beam.roles.TreeVerifier.score_tree`; yields log-probabilities of the whole block."""
        yield _mean(member.score_tree(block) for member in self._members)

    def keep(self, rows: Tensor) -> None:
        for member in self._members:
            member.keep(rows)


def _mean(members: Iterable[Iterator[Tensor]]) -> Tensor:
    """Log-probabilities by the mean of what all members say of a block, piece by piece each."""
    log_probs = [torch.cat(list(pieces)).float().log_softmax(dim=-1) for pieces in members]
    return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))
