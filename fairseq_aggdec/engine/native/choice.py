"""The choice of tokens by the kernels."""

import ctypes

import torch
from torch import Tensor

from fairseq_aggdec.decoding import top_k
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.native.library import ADDRESS, I64, Kernels, address, threads
from fairseq_aggdec.engine.plain import choice
from fairseq_aggdec.engine.plain.choice import Bans, LogProbs


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`top_k.best_entries`, in C for single precision; equal scores are in the order of their tokens."""
    found = library.kernels()
    if found is None or scores.dtype != torch.float32 or scores.numel() == 0:
        return top_k.best_entries(scores, count)
    scores = scores.contiguous()
    values, tokens = scores.new_empty(scores.size(0), count), scores.new_empty(scores.size(0), count, dtype=torch.long)
    addresses = (values.data_ptr(), tokens.data_ptr())
    found.best(scores.data_ptr(), *scores.shape, count, *addresses, threads())
    return values, tokens


def likeliest(logits: Tensor, count: int, bans: Bans) -> tuple[Tensor, Tensor, LogProbs | Tensor]:
    """`choice.likeliest`, in C for single precision; equal scores are in the order of their tokens."""
    found = library.kernels()
    if found is None or logits.dtype != torch.float32 or logits.numel() == 0:
        return choice.likeliest(logits, count, bans)
    logits, (rows, width) = logits.contiguous(), logits.shape
    values, tokens = logits.new_empty(rows, count), logits.new_empty(rows, count, dtype=torch.long)
    normals = logits.new_empty(rows, 2)
    addresses = (values.data_ptr(), tokens.data_ptr(), normals.data_ptr())
    banned = (bans.never, bans.late, address(bans.early))
    found.likeliest(logits.data_ptr(), rows, width, count, *banned, *addresses, threads())
    return values, tokens, LogProbs(logits, normals, bans)


class _CChain(ctypes.Structure):
    """`Chain` of kernels.c, where the fields are described."""

    _fields_ = (
        *((name, ADDRESS) for name in ("before", "after", "here", "candidates", "scores", "last", "tokens")),
        *((name, I64) for name in ("rows", "k", "count", "dim")),
    )


def chain(
    found: Kernels, before: Tensor, after: Tensor, here: Tensor, candidates: Tensor, scores: Tensor, last: Tensor
) -> Tensor:
    """See `Backend.chain`; `found`: the kernels."""
    inputs = [x.contiguous() for x in (before, after, here, candidates, scores, last)]
    tokens = candidates.new_empty(candidates.shape[:2])
    addresses = [x.data_ptr() for x in (*inputs, tokens)]
    as_c = _CChain(*addresses, *candidates.shape, before.size(1))
    found.chain(ctypes.addressof(as_c))
    return tokens
