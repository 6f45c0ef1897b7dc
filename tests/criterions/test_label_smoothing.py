"""Against fairseq's own label-smoothed loss."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from fairseq_aggdec.criterions import label_smoothing
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss

PAD = 1


@pytest.fixture(params=["one part", "parts of two rows"], autouse=True)
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "one part":
        monkeypatch.setitem(label_smoothing._CHUNK_NUMBERS, "cpu", 22)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_fairseqs_loss_and_gradient(smoothing: float) -> None:
    """With targets that are padding; the gradient is of a multiple of the loss."""
    torch.manual_seed(1)
    logits = (3 * torch.randn(2, 4, 11)).requires_grad_()
    targets = torch.randint(11, (2, 4))
    targets[0, 2] = targets[1, 3] = PAD
    theirs, their_nll = label_smoothed_nll_loss(
        logits.log_softmax(-1), targets, smoothing, ignore_index=PAD
    )
    loss, nll = smoothed_loss(logits, targets, smoothing, ignored=PAD)
    torch.testing.assert_close(loss, theirs)
    torch.testing.assert_close(nll, their_nll)
    [gradient] = torch.autograd.grad(3 * loss, logits)
    [their_gradient] = torch.autograd.grad(3 * theirs, logits)
    torch.testing.assert_close(gradient, their_gradient)


def test_in_half_precision_the_loss_is_computed_in_single_precision() -> None:
    torch.manual_seed(3)
    logits, targets = (
        torch.randn(6, 11).bfloat16().requires_grad_(),
        torch.randint(11, (6,)),
    )
    whole = logits.detach().float().requires_grad_()
    (loss, _), (expected, _) = (
        smoothed_loss(each, targets, 0.1) for each in (logits, whole)
    )
    assert loss.item() == expected.item()
    [gradient], [exact] = (
        torch.autograd.grad(each, of)
        for each, of in ((loss, logits), (expected, whole))
    )
    assert torch.equal(gradient, exact.bfloat16())


def test_without_any_target_there_is_a_gradient_of_nothing() -> None:
    """As where a head has nothing to predict in a batch: training goes on."""
    logits = torch.randn(0, 6).requires_grad_()
    loss, nll = smoothed_loss(logits, torch.zeros(0, dtype=torch.long), 0.1)
    assert (loss.item(), nll.item()) == (0, 0)
    [gradient] = torch.autograd.grad(loss, logits)
    assert gradient.shape == logits.shape
