"""Against fairseq's own label-smoothed loss."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from fairseq_aggdec.criterions.label_smoothing import smoothed_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_fairseqs_loss_and_gradient(smoothing: float) -> None:
    torch.manual_seed(1)
    logits = (3 * torch.randn(7, 11)).requires_grad_()
    targets = torch.randint(11, (7,))
    theirs, their_nll = label_smoothed_nll_loss(logits.log_softmax(-1), targets[:, None], smoothing)
    loss, nll = smoothed_loss(logits, targets, smoothing)
    torch.testing.assert_close(loss, theirs)
    torch.testing.assert_close(nll, their_nll)
    [gradient] = torch.autograd.grad(loss, logits, retain_graph=True)
    [their_gradient] = torch.autograd.grad(theirs, logits)
    torch.testing.assert_close(gradient, their_gradient)


def test_weights_count_targets_in_the_loss_alone() -> None:
    torch.manual_seed(2)
    logits, targets = torch.randn(5, 6), torch.randint(6, (5,))
    weights = torch.tensor([1.0, 0.5, 0.0, 2.0, 1.0])
    one_by_one = [smoothed_loss(logits[n : n + 1], targets[n : n + 1], 0.1) for n in range(5)]
    loss, nll = smoothed_loss(logits, targets, 0.1, weights)
    torch.testing.assert_close(loss, sum(weight * each[0] for weight, each in zip(weights, one_by_one, strict=True)))
    torch.testing.assert_close(nll, sum((each[1] for each in one_by_one), torch.tensor(0.0)))
