"""Label-smoothed cross-entropy that computes its gradient in the forward pass, in chunks of rows.

Operations on the whole N x V matrix read and write it a dozen times, which for a small model takes a CPU as long as the
model's backward pass. A chunk that stays in the cache is read from memory once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_CHUNK_NUMBERS = {"cpu": 1 << 18}
"""elements of a chunk by type of device; on a CPU a chunk stays in a core's cache"""
_LARGE_CHUNK_NUMBERS = 1 << 26
"""size of a chunk on other devices"""


def smoothed_loss(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    weights: Tensor | None = None,
    ignored: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Label-smoothed and plain negative log-likelihood, both summed, as fairseq's `label_smoothed_cross_entropy`.

    Args:
        logits: ... x V, of any floating type; the loss is computed in single precision.
        targets: ..., token numbers.
        smoothing: the probability of the V-1 other tokens together.
        weights: ..., the weight of each target in the smoothed loss, which alone has a gradient; None: all are 1.
        ignored: a token, such as padding, that does not count as a target.
    """
    flat = targets.flatten()
    counted = (
        torch.ones_like(flat, dtype=torch.float32)
        if ignored is None
        else flat.ne(ignored).float()
    )
    weighed = counted if weights is None else counted * weights.flatten()
    return _SmoothedLoss.apply(logits.flatten(0, -2), flat, smoothing, weighed, counted)


class _SmoothedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        targets: Tensor,
        smoothing: float,
        weights: Tensor,
        counted: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Both losses of N x V logits, N targets, and their weights in the smoothed and in the plain loss, N each."""
        size = logits.size(-1)
        share = smoothing / (size - 1)  # of each token that is not the target
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        rows = max(
            1, _CHUNK_NUMBERS.get(logits.device.type, _LARGE_CHUNK_NUMBERS) // size
        )
        # two tensors, both returned without rows
        loss, nll = (torch.zeros((), device=logits.device) for _ in range(2))
        for start in range(0, len(logits), rows):
            part = slice(start, start + rows)
            target = targets[part, None]
            weight = weights[part, None]
            x = logits[part].to(torch.float32, copy=True)
            highest = x.amax(dim=-1, keepdim=True)
            of_target = x.gather(1, target)
            everything = x.sum(dim=-1, keepdim=True)
            total = x.sub_(highest).exp_().sum(dim=-1, keepdim=True)
            normaliser = total.log() + highest
            of_target = (
                normaliser - of_target
            )  # minus the log-probability of the target
            everything = size * normaliser - everything  # of all tokens together
            loss = (
                loss
                + (
                    ((1 - smoothing - share) * of_target + share * everything) * weight
                ).sum()
            )
            nll = nll + (of_target[:, 0] * counted[part]).sum()
            if gradient is not None:
                x.div_(total).sub_(share).scatter_add_(
                    1, target, torch.full_like(of_target, smoothing + share - 1)
                )
                gradient[part] = x.mul_(weight)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        [gradient] = ctx.saved_tensors
        # in place; PyTorch refuses a second call
        return gradient.mul_(factor), None, None, None, None
