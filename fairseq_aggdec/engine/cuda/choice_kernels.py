"""Triton kernels around a decoder's layers: the embedding, the projection to the vocabulary and the choice.

N is the count of rows, V that of symbols. A row is computed by itself, in a fixed order.
"""

# mypy: ignore-errors
# the bodies are in Triton's language

import triton
import triton.language as tl

from fairseq_aggdec.engine.cuda.kernels import (
    in_order,
    operand_columns,
    operand_rows,
    wait,
)

_LARGEST = tl.constexpr(2**31 - 1)
_NO_KEY = tl.constexpr(-(2**63))


@triton.jit(do_not_specialize=["num_rows"])
def project(
    features,
    weight,
    bias,
    logits,
    num_rows,
    symbols,
    dim: tl.constexpr,
    block_size: tl.constexpr,
    pdl: tl.constexpr,
):
    """Logits of all rows for `block_size` symbols. Of every 128 columns, each of four warps adds up 32.

    Grid: V / block_size.

    Args:
        features: N x dim.
        weight: V x dim.
        bias: V; or None.
        logits: N x V.
    """
    # weights are on their way before the features are there
    columns = operand_columns(4)
    first_symbol = tl.program_id(0) * block_size
    symbol = first_symbol + operand_rows(block_size // 8)
    start = weight + symbol.to(tl.int64) * dim
    pieces = ()
    for first in tl.static_range(0, dim, 128):
        is_weight = (symbol < symbols) & (first + columns < dim)
        piece = tl.load(start + first + columns, mask=is_weight, other=0.0)
        piece = in_order(piece, block_size // 8, 4)
        pieces = pieces + (tl.permute(piece, (0, 2, 1)),)  # noqa: RUF005
    symbol = first_symbol + tl.arange(0, block_size)
    is_symbol = symbol < symbols
    biases = tl.zeros((block_size,), tl.float32)
    if bias is not None:
        biases = tl.load(bias + symbol, mask=is_symbol, other=0.0).to(tl.float32)

    # 16 rows at a time
    wait(pdl)
    for first_row in range(0, num_rows, 16):
        row = first_row + operand_rows(2)
        sums = tl.zeros((4, 16, block_size), tl.float32)
        for index in tl.static_range(len(pieces)):
            column = index * 128 + columns
            is_feature = (row < num_rows) & (column < dim)
            x = tl.load(features + row * dim + column, mask=is_feature, other=0.0)
            sums = tl.dot(in_order(x, 2, 4), pieces[index], sums)
        result = tl.sum(sums, 0) + biases[None, :]
        output_row = first_row + tl.arange(0, 16)[:, None]
        offsets = output_row.to(tl.int64) * symbols + symbol[None, :]
        is_logit = (output_row < num_rows) & is_symbol[None, :]
        tl.store(logits + offsets, result, mask=is_logit)


@triton.jit
def read_chunk(
    logits,
    positions,
    limits,
    proposed,
    inverse_temperature,
    symbols,
    keys,
    peaks,
    sums,
    higher,
    chunks,
    chunk: tl.constexpr,
    count: tl.constexpr,
    alone: tl.constexpr,
    pdl: tl.constexpr,
):
    """The best allowed entries of one chunk of a row, and what the row's normalisation needs of it.

    Grid: N x chunks; CUDA allows 65,535 in the second place.

    Args:
        logits, positions, limits, proposed: see `choice.chosen`.
        symbols: V.
        keys: N x chunks x count, the entries, see `key_of`.
        peaks: N x chunks, the highest score, banned or not.
        sums: N x chunks, the sum of exp(score - peak).
        higher: N x chunks, how many scores are above the proposed token's.
        chunk: the symbols of a chunk.
        alone: a forced token leaves no other.
    """
    row = tl.program_id(0)
    part = tl.program_id(1)
    token = part * chunk + tl.arange(0, chunk)
    entry = row * chunks + part
    wait(pdl)
    scores = _score_of(logits, row, token, inverse_temperature, symbols)

    # the normalisation; minus infinity less minus infinity would be NaN
    peak = tl.max(scores, 0)
    tl.store(peaks + entry, peak)
    finite_peak = tl.where(peak == -float("inf"), 0.0, peak)
    tl.store(sums + entry, tl.sum(tl.exp(scores - finite_peak), 0))

    # the best entries
    banned = _is_banned(positions, limits, row, token, alone)
    scores = tl.where(banned, -float("inf"), scores)
    found = key_of(scores, token)
    if count == 1:
        tl.store(keys + entry, tl.max(found, 0))
    else:
        best = keys + entry * count + tl.arange(0, count)
        tl.store(best, tl.topk(found, count))
    if proposed is not None:
        threshold = _proposed_score(
            logits, positions, limits, proposed, inverse_temperature, symbols, row
        )
        tl.store(higher + entry, tl.sum((scores > threshold).to(tl.float32), 0))


@triton.jit
def choose(
    logits,
    positions,
    limits,
    proposed,
    inverse_temperature,
    symbols,
    keys,
    peaks,
    sums,
    higher,
    chunks,
    results,
    padded_chunks: tl.constexpr,
    pdl: tl.constexpr,
):
    """A row's choice from what was found in its chunks. Grid: N.

    Args:
        logits to chunks: see `read_chunk`.
        results: 5 x N, see `choice.chosen`.
    """
    row = tl.program_id(0)
    part = tl.arange(0, padded_chunks)
    is_part = part < chunks
    entries = row * chunks + part
    result = results + row
    step = tl.num_programs(0)
    wait(pdl)

    # the best token, and what normalises its score
    peak, log_sum = _normalisers(peaks, sums, entries, is_part)
    found = tl.load(keys + entries, mask=is_part, other=_NO_KEY)
    score, token = entry_of(tl.max(found, 0))

    # a forced EOS
    eos = tl.load(limits + 1)
    max_len = tl.load(limits + 3)
    is_forced = tl.load(positions + row) >= max_len
    eos_score = _score_of(logits, row, eos, inverse_temperature, symbols)
    score = tl.where(is_forced, eos_score, score)
    tl.store(result, tl.where(is_forced, eos, token))
    tl.store(result + step, score - peak - log_sum)
    tl.store(result + 2 * step, is_forced)

    # the proposed token
    score = _proposed_score(
        logits, positions, limits, proposed, inverse_temperature, symbols, row
    )
    tl.store(result + 3 * step, score - peak - log_sum)
    rank = 0.0
    if proposed is not None:
        rank = tl.sum(tl.load(higher + entries, mask=is_part, other=0.0), 0)
    tl.store(result + 4 * step, rank)


@triton.jit(do_not_specialize=["count"])
def sort_entries(
    keys,
    peaks,
    sums,
    higher,
    chunks,
    values,
    tokens,
    count,
    padded_chunks: tl.constexpr,
    padded_count: tl.constexpr,
    pdl: tl.constexpr,
):
    """A row's best entries from those of its chunks, `padded_count` each. Grid: N.

    Args:
        keys to chunks: see `read_chunk`.
        values, tokens: N x count.
    """
    row = tl.program_id(0)
    part = tl.arange(0, padded_chunks)
    candidate = tl.arange(0, padded_chunks * padded_count)
    wait(pdl)
    peak, log_sum = _normalisers(peaks, sums, row * chunks + part, part < chunks)
    of_chunks = keys + row * chunks * padded_count
    found = tl.load(
        of_chunks + candidate, mask=candidate < chunks * padded_count, other=_NO_KEY
    )
    score, token = entry_of(tl.topk(found, padded_count))
    rank = tl.arange(0, padded_count)
    tl.store(values + row * count + rank, score - peak - log_sum, mask=rank < count)
    tl.store(tokens + row * count + rank, token, mask=rank < count)


@triton.jit
def _score_of(logits, row, token, inverse_temperature, symbols):
    """Logits divided by the temperature and rounded, as in fairseq; minus infinity where there is no such token."""
    is_symbol = (token >= 0) & (token < symbols)
    start = logits + row.to(tl.int64) * symbols
    score = tl.load(start + token, mask=is_symbol, other=-float("inf"))
    return (score.to(tl.float32) * inverse_temperature).to(score.dtype).to(tl.float32)


@triton.jit
def _is_banned(positions, limits, row, token, alone: tl.constexpr):
    """`pad`, an early EOS, and with `alone` all but a forced EOS."""
    position = tl.load(positions + row)
    pad = tl.load(limits)
    eos = tl.load(limits + 1)
    min_len = tl.load(limits + 2)
    max_len = tl.load(limits + 3)
    is_early = (token == eos) & (position < min_len) & (position < max_len)
    banned = (token == pad) | is_early
    if alone:
        banned = banned | ((token != eos) & (position >= max_len))
    return banned


@triton.jit
def _proposed_score(
    logits, positions, limits, proposed, inverse_temperature, symbols, row
):
    """The score of the row's proposed token; minus infinity where it is banned or there is none."""
    score = -float("inf")
    if proposed is not None:
        token = tl.load(proposed + row)
        banned = _is_banned(positions, limits, row, token, False)
        score = tl.where(
            banned, score, _score_of(logits, row, token, inverse_temperature, symbols)
        )
    return score


@triton.jit
def _normalisers(peaks, sums, entries, mask):
    """The terms that are subtracted from a row's scores in turn: the highest, and the logarithm of the sum."""
    highest = tl.load(peaks + entries, mask=mask, other=-float("inf"))
    peak = tl.max(highest, 0)
    of_chunks = tl.load(sums + entries, mask=mask, other=0.0)
    return peak, tl.log(tl.sum(of_chunks * tl.exp(highest - peak), 0))


@triton.jit
def key_of(scores, tokens):
    """An int64 for each entry, larger for a higher score, and for the earlier of equal ones; NaN counts as infinity."""
    scores = tl.where(scores == scores, scores, float("inf"))
    scores = tl.where(scores == 0.0, 0.0, scores)  # one zero, not two
    bits = scores.to(tl.int32, bitcast=True)
    in_order_of_scores = bits ^ ((bits >> 31) & _LARGEST)
    return (in_order_of_scores.to(tl.int64) << 32) | (tokens ^ _LARGEST)


@triton.jit
def entry_of(keys):
    """The scores and the tokens of `key_of`."""
    in_order_of_scores = (keys >> 32).to(tl.int32)
    bits = in_order_of_scores ^ ((in_order_of_scores >> 31) & _LARGEST)
    return bits.to(tl.float32, bitcast=True), (keys & _LARGEST) ^ _LARGEST


@triton.jit
def embed(
    tokens,
    positions,
    words,
    position_embeddings,
    extra_embeddings,
    x,
    scale,
    symbols,
    num_positions,
    num_extra,
    dim: tl.constexpr,
    padded_dim: tl.constexpr,
    pdl: tl.constexpr,
):
    """The embedding of one token, see `choice.embedded`. Grid: N.

    Args:
        words, position_embeddings, extra_embeddings: tables of `symbols`, `num_positions` and `num_extra` rows; the
            last two may be None.
        x: N x dim.
    """
    row = tl.program_id(0)
    column = tl.arange(0, padded_dim)
    is_column = column < dim
    wait(pdl)

    # the word's, scaled; NaN for a token that is no symbol
    token = tl.load(tokens + row)
    is_word = (token >= 0) & (token < symbols)
    embedding = tl.load(
        words + token * dim + column, mask=is_column & is_word, other=float("nan")
    )
    embedding = (embedding.to(tl.float32) * scale).to(embedding.dtype)

    # an extra symbol's, not scaled
    if extra_embeddings is not None:
        is_extra = (token >= symbols) & (token < symbols + num_extra)
        of_token = extra_embeddings + (token - symbols) * dim
        extra = tl.load(
            of_token + column, mask=is_column & is_extra, other=float("nan")
        )
        embedding = tl.where(is_word, embedding, extra)

    # the position's, the last one for all after the table's end
    if position_embeddings is not None:
        position = tl.minimum(tl.load(positions + row), num_positions - 1)
        added = tl.load(
            position_embeddings + position * dim + column, mask=is_column, other=0.0
        )
        embedding = (embedding.to(tl.float32) + added.to(tl.float32)).to(
            embedding.dtype
        )
    tl.store(x + row * dim + column, embedding, mask=is_column)
