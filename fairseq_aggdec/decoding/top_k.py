"""The highest scores of rows, faster on a CPU than by PyTorch's functions, and the same."""

from collections.abc import Sequence

import torch
from torch import Tensor

_CHUNK_WIDTH = 256
_TOP_K_CHUNK_WIDTH = 64
# with fewer scores the additional calls cost more than they save
_MIN_SCORES_TO_CHUNK = 40_000


def best(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The highest score of each position and its token, ... x V -> twice ...

    Equals `scores.max(dim=-1)`, which on a CPU reads one element at a time. Maxima of chunks are many times faster, and
    only the best chunk is searched.
    """
    vocabulary = scores.size(-1)
    if scores.numel() < _MIN_SCORES_TO_CHUNK:
        value, token = scores.max(dim=-1)
        return value, token
    chunks = vocabulary // _CHUNK_WIDTH
    peaks = (
        scores[..., : chunks * _CHUNK_WIDTH]
        .unflatten(-1, (chunks, _CHUNK_WIDTH))
        .amax(dim=-1)
    )
    if chunks * _CHUNK_WIDTH < vocabulary:
        peaks = torch.cat(
            [peaks, scores[..., chunks * _CHUNK_WIDTH :].amax(dim=-1, keepdim=True)],
            dim=-1,
        )
    start = peaks.argmax(dim=-1, keepdim=True) * _CHUNK_WIDTH
    inside = (start + torch.arange(_CHUNK_WIDTH, device=scores.device)).clamp_(
        max=vocabulary - 1
    )
    value, offset = scores.gather(-1, inside).max(dim=-1)
    return value, inside.gather(-1, offset[..., None]).squeeze(-1)


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest scores of each row and their tokens, N x V -> twice N x `count`, in descending order.

    Equals `topk`, which on a CPU reads one element at a time; only the chunks with the highest maxima are searched.
    """
    if count == 1:
        value, token = best(scores)
        return value[:, None], token[:, None]
    chunks = scores.size(1) // _TOP_K_CHUNK_WIDTH
    whole = chunks * _TOP_K_CHUNK_WIDTH
    if scores.numel() < _MIN_SCORES_TO_CHUNK or chunks < 8 * count:
        values, tokens = scores.topk(count)
        return values, tokens
    peaks = scores[:, :whole].unflatten(1, (chunks, _TOP_K_CHUNK_WIDTH)).amax(dim=-1)
    offsets = torch.arange(_TOP_K_CHUNK_WIDTH, device=scores.device)
    inside = (
        peaks.topk(count).indices[..., None] * _TOP_K_CHUNK_WIDTH + offsets
    ).flatten(1)
    if whole < scores.size(1):
        rest = torch.arange(whole, scores.size(1), device=scores.device)
        inside = torch.cat([inside, rest.expand(scores.size(0), -1)], dim=1)
    values, places = scores.gather(1, inside).topk(count)
    return values, inside.gather(1, places)


def best_tokens(logits: Tensor, never: Sequence[int]) -> Tensor:
    """The best token at each position except those of `never`, ... x V -> ...; parts of the logits are overwritten."""
    exclude(logits, never)
    return best(logits)[1]


def exclude(logits: Tensor, never: Sequence[int]) -> None:
    """Set the scores (... x V) of the tokens of `never` to minus infinity, in place."""
    for token in never:
        logits[..., token].fill_(-torch.inf)
