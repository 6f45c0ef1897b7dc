"""The mean of probabilities of several verifiers."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block, Verifier
from fairseq_aggdec.engine.ensemble import EnsembleVerifier
from tests.scripted_decoding import scored


class FixedVerifier(Verifier):
    """Gives the same scores whatever it reads."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = torch.tensor(scores)

    def score(self, block: Block) -> Iterator[Tensor]:
        dtype = torch.float16 if block.tokens.size(1) > 2 else torch.float32
        yield self.scores.to(dtype).expand(block.ragged.size, -1).clone()

    def keep(self, rows: Tensor) -> None:
        raise NotImplementedError


BLOCK, STARTS = torch.zeros(2, 2, dtype=torch.long), torch.tensor([0, 4])


def probabilities(ensemble: EnsembleVerifier) -> Tensor:
    """Of one position; all are alike."""
    scores = scored(ensemble, BLOCK, STARTS)
    assert scores.shape == (2, 2, 2)
    assert scores.eq(scores[0, 0]).all()
    return scores[0, 0].exp()


def test_probabilities_are_averaged_not_scores() -> None:
    """(0.9 + 0.002) / 2; the mean of the scores would leave the first token next to nothing."""
    members: list[Verifier] = [
        FixedVerifier([math.log(0.9), math.log(0.1)]),
        FixedVerifier([math.log(0.002), math.log(0.998)]),
    ]
    torch.testing.assert_close(probabilities(EnsembleVerifier(members)), torch.tensor([0.451, 0.549]))


def test_scores_need_not_be_normalised() -> None:
    members: list[Verifier] = [FixedVerifier([5.0, 5.0]), FixedVerifier([-7 + math.log(3), -7.0])]
    torch.testing.assert_close(probabilities(EnsembleVerifier(members)), torch.tensor([0.625, 0.375]))
