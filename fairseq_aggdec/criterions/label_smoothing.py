"""Label-smoothed cross-entropy that finds its gradient on the way, a part of the rows at a time.

The loss of a small model reads and writes N x V numbers a dozen times where it is written as operations on the whole
matrix, which takes a CPU as long as the model's own backward pass. A part that stays in the cache is read once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_PART = {"cpu": 1 << 18}
"""numbers in single precision that stay in a core's cache; elsewhere fewer and larger parts are better"""
_LARGE_PART = 1 << 26


def smoothed_loss(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None, ignored: int | None = None
) -> tuple[Tensor, Tensor]:
    """Label-smoothed and plain negative log-likelihood, both summed, as fairseq's `label_smoothed_cross_entropy`.

    Args:
        logits: ... x V, of any floating type; the loss is computed in single precision.
        targets: of the other dimensions.
        smoothing: the probability of the V-1 other tokens together.
        weights: as `targets`, each one's weight in the smoothed loss, not in the plain one; None: all are 1.
        ignored: targets that are this token count nothing.

    Returns:
        the smoothed loss, which has a gradient, and the plain one, which has none.
    """
    flat = targets.flatten()
    counted = torch.ones_like(flat, dtype=torch.float32) if ignored is None else flat.ne(ignored).float()
    weighed = counted if weights is None else counted * weights.flatten()
    return _SmoothedLoss.apply(logits.flatten(0, -2), flat, smoothing, weighed, counted)


class _SmoothedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor, counted: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Of N x V logits, N targets, their weights in the smoothed loss and in the plain one."""
        size = logits.size(-1)
        share = smoothing / (size - 1)  # of each token that is not the target
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        rows = max(1, _PART.get(logits.device.type, _LARGE_PART) // size)
        loss, nll = (torch.zeros((), device=logits.device) for _ in range(2))  # not one: without rows both are returned
        for start in range(0, len(logits), rows):
            part = slice(start, start + rows)
            target, weight = targets[part, None], weights[part, None]
            x = logits[part].to(torch.float32, copy=True)
            highest, own, everything = x.amax(dim=-1, keepdim=True), x.gather(1, target), x.sum(dim=-1, keepdim=True)
            total = x.sub_(highest).exp_().sum(dim=-1, keepdim=True)
            normaliser = total.log() + highest
            own = normaliser - own  # minus the log-probability of the target
            everything = size * normaliser - everything  # of all tokens together
            loss = loss + (((1 - smoothing - share) * own + share * everything) * weight).sum()
            nll = nll + (own[:, 0] * counted[part]).sum()
            if gradient is not None:
                x.div_(total).sub_(share).scatter_add_(1, target, torch.full_like(own, smoothing + share - 1))
                gradient[part] = x.mul_(weight)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        [gradient] = ctx.saved_tensors
        return gradient.mul_(factor), None, None, None, None  # a second time PyTorch refuses: it has been changed
