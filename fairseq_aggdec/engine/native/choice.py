"""The choice of tokens by the kernels."""

import ctypes

import torch
from torch import Tensor

from fairseq_aggdec.decoding import top_k
from fairseq_aggdec.decoding.search_rules import Bans
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.engine.native.library import (
    ADDRESS,
    I64,
    Kernels,
    address,
    fields,
    threads,
)
from fairseq_aggdec.engine.plain import choice
from fairseq_aggdec.engine.plain.choice import Best, LogProbs


def best_entries(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`top_k.best_entries`, in C for single precision; equal scores are in the order of their tokens."""
    found = library.kernels()
    if found is None or scores.dtype != torch.float32 or scores.numel() == 0:
        return top_k.best_entries(scores, count)
    scores = scores.contiguous()
    rows, width = scores.shape
    values = scores.new_empty(rows, count)
    tokens = scores.new_empty(rows, count, dtype=torch.long)
    found.best(
        scores.data_ptr(),
        rows,
        width,
        count,
        values.data_ptr(),
        tokens.data_ptr(),
        threads(),
    )
    return values, tokens


def likeliest(logits: Tensor, count: int, bans: Bans) -> Best:
    """`choice.likeliest`, in C for single precision; equal scores are in the order of their tokens."""
    found = library.kernels()
    if found is None or logits.dtype != torch.float32 or logits.numel() == 0:
        return choice.likeliest(logits, count, bans)
    logits = logits.contiguous()
    rows, width = logits.shape
    values = logits.new_empty(rows, count)
    tokens = logits.new_empty(rows, count, dtype=torch.long)
    normals = logits.new_empty(rows, 2)
    found.likeliest(
        logits.data_ptr(),
        rows,
        width,
        count,
        bans.pad,
        bans.eos,
        address(bans.early),
        values.data_ptr(),
        tokens.data_ptr(),
        normals.data_ptr(),
        threads(),
    )
    return values, tokens, LogProbs(logits, normals, bans)


class _CChain(ctypes.Structure):
    """`Chain` of kernels.c, where the fields are described."""

    _fields_ = (
        *fields(ADDRESS, "before after here candidates scores last tokens"),
        *fields(I64, "rows k count dim"),
    )


def chain(
    found: Kernels,
    before: Tensor,
    after: Tensor,
    here: Tensor,
    candidates: Tensor,
    scores: Tensor,
    last: Tensor,
) -> Tensor:
    """See `PlainBackend.chain`; `found`: the kernels."""
    inputs = [x.contiguous() for x in (before, after, here, candidates, scores, last)]
    tokens = candidates.new_empty(candidates.shape[:2])
    addresses = [x.data_ptr() for x in (*inputs, tokens)]
    as_c = _CChain(*addresses, *candidates.shape, before.size(1))
    found.chain(ctypes.addressof(as_c))
    return tokens
