"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math

import torch
from torch import Tensor

from fairseq_aggdec.decoding.loop import Verifier


class EnsembleVerifier(Verifier):
    """A `loop.Verifier` over several."""

    def __init__(self, members: list[Verifier]) -> None:
        """
        Args:
            members: the verifiers, started and kept in step.
        """
        self._members = members

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """See `loop.Verifier.score`; returns log-probabilities."""
        log_probs = [member.score(block, starts, longest).float().log_softmax(dim=-1) for member in self._members]
        return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))

    def keep(self, rows: Tensor) -> None:
        for member in self._members:
            member.keep(rows)
