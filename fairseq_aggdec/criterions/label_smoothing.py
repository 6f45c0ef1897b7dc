"""Label-smoothed cross-entropy, without a matrix of log-probabilities."""

from torch import Tensor


def smoothed_loss(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Label-smoothed and plain negative log-likelihood, both summed, as fairseq's `label_smoothed_cross_entropy`.

    Args:
        logits: N x V, of any floating type; the loss is computed in single precision.
        targets: N.
        smoothing: the probability of the V-1 other tokens together.
        weights: N, each target's weight in the smoothed loss, not in the plain one; None: all are 1.
    """
    logits = logits.float()
    normaliser = logits.logsumexp(dim=-1)
    nll = normaliser - logits.gather(1, targets[:, None])[:, 0]
    loss = nll
    if smoothing > 0:
        size = logits.size(-1)
        share = smoothing / (size - 1)
        everything = size * normaliser - logits.sum(dim=-1)  # minus the log-probabilities of the whole vocabulary
        loss = (1 - smoothing - share) * nll + share * everything
    if weights is not None:
        loss = loss * weights
    return loss.sum(), nll.sum()
