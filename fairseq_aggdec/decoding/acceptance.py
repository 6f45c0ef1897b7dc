"""Which drafted tokens the verifier accepts: pure functions on drafts and the verifier's choices."""

import torch
from torch import Tensor


def exact(draft: Tensor, draft_lengths: Tensor, chosen: Tensor) -> Tensor:
    """Count the leading drafted tokens that the verifier would have chosen itself (papers/000 Eq. 7).

    Args:
        draft: drafted tokens, B x K.
        draft_lengths: how many of them are real, B; the rest of a row is ignored.
        chosen: the verifier's own tokens at the drafted positions and the one after, B x (K+1).

    Returns:
        B: the position of the bifurcation in each row, or its draft length where all were accepted.
    """
    width = draft.size(1)
    real = torch.arange(width, device=draft.device) < draft_lengths[:, None]
    return ((draft == chosen[:, :width]) & real).long().cumprod(dim=1).sum(dim=1)
