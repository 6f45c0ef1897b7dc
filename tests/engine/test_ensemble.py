"""The mean of probabilities of several verifiers."""

import math

import torch
from torch import Tensor

from fairseq_aggdec.decoding.loop import Verifier
from fairseq_aggdec.engine.ensemble import EnsembleVerifier


class FixedVerifier(Verifier):
    """Gives the same scores whatever it reads, and notes what it is told."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = torch.tensor(scores)
        self.kept: list[list[int]] = []
        self.starts: list[list[int]] = []

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        assert longest == max(starts.tolist())
        self.starts.append(starts.tolist())
        return self.scores.to(torch.float16 if block.size(1) > 2 else torch.float32).expand(*block.shape, -1).clone()

    def keep(self, rows: Tensor) -> None:
        self.kept.append(rows.tolist())


BLOCK, STARTS = torch.zeros(2, 2, dtype=torch.long), torch.tensor([0, 4])


def probabilities(ensemble: EnsembleVerifier) -> Tensor:
    """Of one position; all are alike."""
    scores = ensemble.score(BLOCK, STARTS, 4)
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


def test_one_member_is_itself() -> None:
    torch.testing.assert_close(probabilities(EnsembleVerifier([FixedVerifier([0.0, 1.0])])).sum().item(), 1.0)


def test_half_precision_is_averaged_in_single() -> None:
    wide = torch.zeros(1, 3, dtype=torch.long)
    scores = EnsembleVerifier([FixedVerifier([0.0, 9.0])]).score(wide, torch.tensor([0]), 0)
    assert scores.dtype == torch.float32


def test_members_are_kept_in_step() -> None:
    members = [FixedVerifier([0.0, 1.0]), FixedVerifier([1.0, 0.0])]
    ensemble = EnsembleVerifier([*members])
    ensemble.score(BLOCK, STARTS, 4)
    ensemble.keep(torch.tensor([1]))
    assert [member.kept for member in members] == [[[1]], [[1]]]
    assert [member.starts for member in members] == [[[0, 4]], [[0, 4]]]
