"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block, Verifier


class EnsembleVerifier(Verifier):
    """A `roles.Verifier` over several."""

    def __init__(self, members: list[Verifier]) -> None:
        """
        Args:
            members: the verifiers, started and kept in step.
        """
        self._members = members

    def score(self, block: Block) -> Iterator[Tensor]:
        """See `roles.Verifier.score`; yields log-probabilities of the whole block."""
        log_probs = [torch.cat(list(member.score(block))).float().log_softmax(dim=-1) for member in self._members]
        yield torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))

    def keep(self, rows: Tensor) -> None:
        for member in self._members:
            member.keep(rows)
