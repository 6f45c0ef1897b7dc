"""Several models as one verifier: the mean of their probabilities, as fairseq averages them."""

import math

import torch
from torch import Tensor

from fairseq_aggdec.decoding.loop import Verifier


class EnsembleVerifier(Verifier):
    """A `loop.Verifier` over several."""

    def __init__(self, members: list[Verifier], temperatures: list[float]) -> None:
        """
        Args:
            members: the verifiers, started and kept in step.
            temperatures: what each one's scores are still to be divided by before they are normalised.
        """
        self._members = members
        self._temperatures = temperatures

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        """See `loop.Verifier.score`; returns log-probabilities, the temperature applied."""
        log_probs = [
            (member.score(block, starts, longest).float() / temperature).log_softmax(dim=-1)
            for member, temperature in zip(self._members, self._temperatures, strict=True)
        ]
        return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))

    def keep(self, rows: Tensor) -> None:
        for member in self._members:
            member.keep(rows)
