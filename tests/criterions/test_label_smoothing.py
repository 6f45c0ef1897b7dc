"""Against fairseq's label-smoothed loss."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from fairseq_aggdec.criterions import label_smoothing
from fairseq_aggdec.criterions.label_smoothing import smoothed_loss

PAD = 1


@pytest.mark.parametrize("chunk", [1 << 18, 22])  # one part, and parts of two rows
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_fairseqs_loss_and_gradient(
    smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With targets that are padding; the gradient is of a multiple of the loss."""
    monkeypatch.setitem(label_smoothing._CHUNK_NUMBERS, "cpu", chunk)
    torch.manual_seed(1)
    logits = (3 * torch.randn(2, 4, 11)).requires_grad_()
    targets = torch.randint(11, (2, 4))
    targets[0, 2] = targets[1, 3] = PAD
    expected = label_smoothed_nll_loss(
        logits.log_softmax(-1), targets, smoothing, ignore_index=PAD
    )
    found = smoothed_loss(logits, targets, smoothing, ignored=PAD)
    torch.testing.assert_close(found, expected)
    gradients = [
        torch.autograd.grad(3 * loss, logits)[0] for loss, _ in (found, expected)
    ]
    torch.testing.assert_close(*gradients)


def test_in_half_precision_the_loss_is_computed_in_single_precision() -> None:
    torch.manual_seed(3)
    half = torch.randn(6, 11).bfloat16().requires_grad_()
    single = half.detach().float().requires_grad_()
    targets = torch.randint(11, (6,))
    loss, _ = smoothed_loss(half, targets, 0.1)
    expected, _ = smoothed_loss(single, targets, 0.1)
    assert loss.item() == expected.item()
    (gradient,) = torch.autograd.grad(loss, half)
    (exact,) = torch.autograd.grad(expected, single)
    assert torch.equal(gradient, exact.bfloat16())


def test_without_any_target_there_is_a_gradient_of_nothing() -> None:
    """As where a head has nothing to predict in a batch, and training continues."""
    logits = torch.randn(0, 6).requires_grad_()
    loss, nll = smoothed_loss(logits, torch.zeros(0, dtype=torch.long), 0.1)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert (loss.item(), nll.item(), len(gradient)) == (0, 0, 0)
