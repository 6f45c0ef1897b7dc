"""Around a decoder's layers by kernels: the embedding, the projection to the vocabulary and the choice.

A row is computed by itself, in a fixed order: it has the same bits however many rows there are. Nothing waits for
the host, so a graph can capture all functions. Inputs are contiguous.
"""

from typing import Any

from torch import Tensor, float32
from triton import cdiv, next_power_of_2

from fairseq_aggdec.engine.cuda.choice_kernels import (
    choose,
    embed,
    project,
    read_chunk,
    sort_entries,
)
from fairseq_aggdec.engine.cuda.launching import launch_options

_CHUNKS = (1024, 4096)
"""symbols that a program of `read_chunk` reads: of vocabularies up to 65,536, and of larger ones"""


def projected(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Logits of features, N x D -> N x V, in the type of features and weight; sums are in fp32.

    For few rows: weights are read once, and 16 rows at a time are multiplied with them.

    `features`: N x D, fp16 or bf16; `weight`: V x D; `bias`: V.
    """
    rows, dim = features.shape
    symbols = weight.size(0)
    logits = features.new_empty(rows, symbols)
    # up to 32 KB of weights: by their registers, four programs share a processor
    block_size = 32 if dim <= 512 else 16
    project[(cdiv(symbols, block_size),)](
        *(features, weight, bias, logits),
        *(rows, symbols, dim, block_size),
        num_warps=4,
        num_stages=1,  # more would bring features through shared memory
        **launch_options(features.device),
    )
    return logits


def chosen(
    logits: Tensor,
    positions: Tensor,
    limits: Tensor,
    proposed: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """The choices of `plain.choice.choose_block` where no rules but `limits` apply, N x V -> N x 5, fp32.

    The columns: the best token, of equal ones the first; its log-probability; whether it is forced, 0 or 1; the
    proposed token's log-probability, minus infinity where it is banned or there is none; its rank, how many tokens
    with a higher score. The log-probabilities of a row with NaN among its logits are NaN.

    `logits` are N x V, V below 2^24, divided by `temperature`; `limits`: pad, eos, min_len and max_len of the rules,
    int64; `positions` and `proposed`: N, int64, proposed -1 where there is no token.
    """
    inputs = (logits, positions, limits, proposed, 1.0 / temperature, logits.size(1))
    chunks = _read_in_chunks(inputs, count=1, alone=False)
    results = logits.new_empty(5, logits.size(0), dtype=float32)
    choose[(logits.size(0),)](
        *inputs,
        *chunks,
        results,
        padded_chunks=next_power_of_2(chunks[-1]),
        num_warps=1,
        **launch_options(logits.device),
    )
    return results.T


def best_entries(
    logits: Tensor,
    positions: Tensor,
    limits: Tensor,
    count: int,
    temperature: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """The entries of `plain.choice.ranked` where no rules but `limits` apply, N x V -> twice N x `count`.

    Log-probabilities, fp32, in descending order, and their tokens, int64, equal ones in the order of the tokens. Other
    arguments as of `chosen`; `count` is at most V.
    """
    padded_count = next_power_of_2(max(count, 2))
    inputs = (logits, positions, limits, None, 1.0 / temperature, logits.size(1))
    chunks = _read_in_chunks(inputs, count=padded_count, alone=True)
    values = logits.new_empty(logits.size(0), count, dtype=float32)
    tokens = positions.new_empty(values.shape)
    sort_entries[(logits.size(0),)](
        *chunks,
        *(values, tokens, count),
        padded_chunks=next_power_of_2(chunks[-1]),
        padded_count=padded_count,
        **launch_options(logits.device),
    )
    return values, tokens


def _read_in_chunks(
    inputs: tuple[Any, ...], count: int, alone: bool
) -> tuple[Any, ...]:
    """What `read_chunk` finds in each chunk of a row: keys, peaks, sums, higher, and how many chunks.

    `inputs`: logits, positions, limits, proposed, inverse temperature, count of symbols.
    """
    logits, positions, *_, symbols = inputs
    chunk = _CHUNKS[symbols > 65_536]
    shape = (logits.size(0), cdiv(symbols, chunk))
    # each aligned as all memory is
    values = [logits.new_empty(shape, dtype=float32) for _ in range(3)]
    chunks = (positions.new_empty(*shape, count), *values, shape[1])
    read_chunk[shape](
        *inputs,
        *chunks,
        *(chunk, count, alone),
        num_warps=max(1, chunk // 256),
        **launch_options(logits.device),
    )
    return chunks


def embedded(
    tokens: Tensor,
    positions: Tensor,
    words: Tensor,
    scale: float,
    position_embeddings: Tensor | None,
    extra_embeddings: Tensor | None,
) -> Tensor:
    """The input of a decoder's first layer, N -> N x D, in the words' type, rounded as by PyTorch's operations.

    A token that has no embedding becomes NaN.

    Args:
        tokens, positions: N, int64; positions beyond `position_embeddings` are its last.
        words: V x D, multiplied by `scale`.
        position_embeddings: P x D.
        extra_embeddings: those of extra symbols, with indices from V on, not scaled.
    """
    dim = words.size(1)
    tables = (words, position_embeddings, extra_embeddings)
    lengths = [0 if table is None else table.size(0) for table in tables]
    x = words.new_empty(tokens.size(0), dim)
    embed[(tokens.size(0),)](
        *(tokens, positions, *tables, x),
        *(scale, *lengths),
        *(dim, next_power_of_2(dim)),
        **launch_options(x.device),
    )
    return x
