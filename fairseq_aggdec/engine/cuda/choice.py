"""Triton kernels around a decoder's layers: the embedding, the projection to the vocabulary and the choice.

A row is computed by itself, in a fixed order: it has the same bits whatever the number of rows is. Nothing waits for
the host, so a graph can capture all functions. Inputs are contiguous.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fairseq_aggdec.engine.cuda.kernels import in_order, wait
from fairseq_aggdec.engine.cuda.launching import launch_options

_LARGEST = tl.constexpr(2**31 - 1)
_NO_KEY = tl.constexpr(-(2**63))
_CHUNKS = (1024, 4096)
"""symbols that a program of `read_chunk` reads: of vocabularies up to 65,536, and of larger ones"""


def projected(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Logits of features, N x D -> N x V, in the type of features and weight; sums are in fp32.

    For few rows: weights are read once, and 16 rows at a time are multiplied with them.

    `features`: N x D, fp16 or bf16; `weight`: V x D; `bias`: V.
    """
    (rows, dim), symbols = features.shape, weight.size(0)
    logits = features.new_empty(rows, symbols)
    width = 32 if dim <= 512 else 16  # up to 32 KB of weights: by their registers, four programs share a processor
    # one stage: more would bring features through shared memory
    options = {"dim": dim, "width": width, "num_warps": 4, "num_stages": 1, **launch_options(features.device)}
    project[(triton.cdiv(symbols, width),)]((features, weight, bias, logits), rows, symbols, **options)
    return logits


@triton.jit(do_not_specialize=["rows"])
def project(
    tensors: tl.tuple, rows: tl.tensor, symbols: tl.tensor, dim: tl.constexpr, width: tl.constexpr, pdl: tl.constexpr
) -> None:
    """Logits of all rows for `width` symbols. Of every 128 columns, each of four warps adds up 32."""
    features, weight, bias, logits = tensors
    # the dimensions of what is read: groups of rows, warps, eight rows, four threads, eight columns of a thread
    eighth, four, place = tl.arange(0, 8)[:, None, None], tl.arange(0, 4), tl.arange(0, 8)
    columns = four[:, None, None, None] * 32 + four[:, None] * 8 + place
    symbol = tl.program_id(0) * width + tl.arange(0, width // 8)[:, None, None, None, None] * 8 + eighth
    begins = weight + symbol.to(tl.int64) * dim
    pieces: tl.tuple = ()  # of the weights; they are on their way before the features are there
    for first in tl.static_range(0, dim, 128):
        is_weight = (symbol < symbols) & (first + columns < dim)
        read = tl.load(begins + first + columns, mask=is_weight, other=0.0)
        pieces = pieces + (tl.permute(in_order(read, width // 8, 4), (0, 2, 1)),)  # noqa: RUF005
    names = tl.program_id(0) * width + tl.arange(0, width)
    added = tl.zeros((width,), tl.float32)
    if bias is not None:
        added = tl.load(bias + names, mask=names < symbols, other=0.0).to(tl.float32)
    wait(pdl)
    for first_row in range(0, rows, 16):
        row = first_row + tl.arange(0, 2)[:, None, None, None, None] * 8 + eighth
        total = tl.zeros((4, 16, width), tl.float32)
        for number in tl.static_range(len(pieces)):
            column = number * 128 + columns
            x = tl.load(features + row * dim + column, mask=(row < rows) & (column < dim), other=0.0)
            total = tl.dot(in_order(x, 2, 4), pieces[number], total)
        found = (tl.sum(total, 0) + added[None, :]).to(logits.dtype.element_ty)
        numbers = first_row + tl.arange(0, 16)[:, None]
        entries = logits + numbers.to(tl.int64) * symbols + names[None, :]
        tl.store(entries, found, mask=(numbers < rows) & (names < symbols)[None, :])


def chosen(
    logits: Tensor, positions: Tensor, limits: Tensor, proposed: Tensor | None = None, temperature: float = 1.0
) -> Tensor:
    """The choices of `plain.choice.choose_block` where no rules but `limits` apply, N x V -> N x 5, fp32.

    The columns: the best token, of equal ones the first; its log-probability; whether it is forced, 0 or 1; the
    proposed token's log-probability, minus infinity where it is banned or there is none; its rank, the number of tokens
    with a higher score. The log-probabilities of a row with NaN among its logits are NaN.

    `logits` are N x V, V below 2^24, divided by `temperature`; `limits`: pad, eos, min_len and max_len of the rules,
    int64; `positions` and `proposed`: N, int64, proposed -1 where there is no token.
    """
    inputs = (logits, positions, limits, proposed, 1.0 / temperature, logits.size(1))
    parts = _read_in_chunks(inputs, count=1, alone=False)
    results = logits.new_empty(5, logits.size(0), dtype=torch.float32)
    options = {"padded": triton.next_power_of_2(parts[-1]), "num_warps": 1, **launch_options(logits.device)}
    choose[(logits.size(0),)](inputs, parts, results, **options)
    return results.T


def best_entries(
    logits: Tensor, positions: Tensor, limits: Tensor, count: int, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The entries of `plain.choice.ranked` where no rules but `limits` apply, N x V -> twice N x `count`.

    Log-probabilities, fp32, in descending order, and their tokens, int64, equal ones in the order of the tokens. Other
    arguments as of `chosen`; `count` is at most V.
    """
    inputs = (logits, positions, limits, None, 1.0 / temperature, logits.size(1))
    kept = triton.next_power_of_2(max(count, 2))
    parts = _read_in_chunks(inputs, count=kept, alone=True)
    values = logits.new_empty(logits.size(0), count, dtype=torch.float32)
    names = positions.new_empty(values.shape)
    sizes = {"padded": triton.next_power_of_2(parts[-1]), "kept": kept}
    sort_entries[(logits.size(0),)](parts, (values, names), count, **sizes, **launch_options(logits.device))
    return values, names


def _read_in_chunks(inputs: tuple[Any, ...], count: int, alone: bool) -> tuple[Any, ...]:
    """What `read_chunk` finds in each of C chunks of a row; see `choose` for both tuples."""
    logits, positions, *_, symbols = inputs
    chunk = _CHUNKS[symbols > 65_536]
    shape = (logits.size(0), triton.cdiv(symbols, chunk))
    numbers = [logits.new_empty(shape, dtype=torch.float32) for _ in range(3)]  # each aligned as all memory is
    parts = (positions.new_empty(*shape, count), *numbers, shape[1])
    sizes = {"chunk": chunk, "count": count, "alone": alone, "num_warps": max(1, chunk // 256)}
    read_chunk[shape](inputs, parts, **sizes, **launch_options(logits.device))
    return parts


@triton.jit
def read_chunk(
    inputs: tl.tuple, parts: tl.tuple, chunk: tl.constexpr, count: tl.constexpr, alone: tl.constexpr, pdl: tl.constexpr
) -> None:
    """The best allowed entries of one chunk of a row, and what the row's normalisation needs of it.

    `peaks` and `sums`: the highest score, banned or not, and the sum of exp(score - peak). `higher`: the number of
    scores above the proposed token's. `alone`: a forced token leaves no other.
    """
    keys, peaks, sums, higher, chunks = parts
    row, part = tl.program_id(0), tl.program_id(1)  # CUDA allows 65,535 in the second place
    names = part * chunk + tl.arange(0, chunk)
    entry = row * chunks + part
    wait(pdl)
    scores = score_of(inputs, row, names)
    peak = tl.max(scores, 0)
    tl.store(peaks + entry, peak)
    # minus infinity less minus infinity would be NaN
    tl.store(sums + entry, tl.sum(tl.exp(scores - tl.where(peak == -float("inf"), 0.0, peak)), 0))
    scores = tl.where(is_banned(inputs, row, names, alone), -float("inf"), scores)
    found = key_of(scores, names)
    if count == 1:
        tl.store(keys + entry, tl.max(found, 0))
    else:
        tl.store(keys + entry * count + tl.arange(0, count), tl.topk(found, count))
    if inputs[3] is not None:
        tl.store(higher + entry, tl.sum((scores > proposed_score(inputs, row)).to(tl.float32), 0))


@triton.jit
def choose(inputs: tl.tuple, parts: tl.tuple, results: tl.tensor, padded: tl.constexpr, pdl: tl.constexpr) -> None:
    """A row's choice from what was found in its chunks; `results`: 5 x N."""
    keys, peaks, sums, higher, chunks = parts
    row, rows, part = tl.program_id(0), tl.num_programs(0), tl.arange(0, padded)
    entries, out = row * chunks + part, results + row
    wait(pdl)
    peak, log_sum = normals_of(peaks, sums, entries, part < chunks)
    score, name = entry_of(tl.max(tl.load(keys + entries, mask=part < chunks, other=_NO_KEY), 0))
    eos, max_len = tl.load(inputs[2] + 1), tl.load(inputs[2] + 3)
    is_forced = tl.load(inputs[1] + row) >= max_len
    score = tl.where(is_forced, score_of(inputs, row, eos), score)
    tl.store(out, tl.where(is_forced, eos, name).to(tl.float32))
    tl.store(out + rows, score - peak - log_sum)
    tl.store(out + 2 * rows, is_forced.to(tl.float32))
    tl.store(out + 3 * rows, proposed_score(inputs, row) - peak - log_sum)
    rank = 0.0
    if inputs[3] is not None:
        rank = tl.sum(tl.load(higher + entries, mask=part < chunks, other=0.0), 0)
    tl.store(out + 4 * rows, rank)


@triton.jit(do_not_specialize=["count"])
def sort_entries(
    parts: tl.tuple, results: tl.tuple, count: tl.tensor, padded: tl.constexpr, kept: tl.constexpr, pdl: tl.constexpr
) -> None:
    """A row's best entries from those of its chunks, `kept` each."""
    keys, peaks, sums, _, chunks = parts
    row, part = tl.program_id(0), tl.arange(0, padded)
    place, candidate = tl.arange(0, kept), tl.arange(0, padded * kept)
    values, names = results
    wait(pdl)
    peak, log_sum = normals_of(peaks, sums, row * chunks + part, part < chunks)
    of_chunks = tl.load(keys + row * chunks * kept + candidate, mask=candidate < chunks * kept, other=_NO_KEY)
    score, name = entry_of(tl.topk(of_chunks, kept))
    tl.store(values + row * count + place, score - peak - log_sum, mask=place < count)
    tl.store(names + row * count + place, name, mask=place < count)


@triton.jit
def score_of(inputs: tl.tuple, row: tl.tensor, names: tl.tensor) -> tl.tensor:
    """Logits divided by the temperature and rounded, as in fairseq; minus infinity where there is no such token."""
    logits, _, _, _, inverse, symbols = inputs
    is_symbol = (names >= 0) & (names < symbols)
    read = tl.load(logits + row.to(tl.int64) * symbols + names, mask=is_symbol, other=-float("inf"))
    return (read.to(tl.float32) * inverse).to(read.dtype).to(tl.float32)


@triton.jit
def is_banned(inputs: tl.tuple, row: tl.tensor, names: tl.tensor, alone: tl.constexpr) -> tl.tensor:
    """`pad`, an early EOS, and with `alone` all but a forced EOS."""
    position, limits = tl.load(inputs[1] + row), inputs[2]
    pad, eos, min_len, max_len = tl.load(limits), tl.load(limits + 1), tl.load(limits + 2), tl.load(limits + 3)
    banned = (names == pad) | ((names == eos) & (position < min_len) & (position < max_len))
    if alone:
        banned = banned | ((names != eos) & (position >= max_len))
    return banned


@triton.jit
def proposed_score(inputs: tl.tuple, row: tl.tensor) -> tl.tensor:
    """The score of the row's proposed token; minus infinity where it is banned or there is none."""
    score = -float("inf")
    if inputs[3] is not None:
        name = tl.load(inputs[3] + row)
        score = tl.where(is_banned(inputs, row, name, False), score, score_of(inputs, row, name))
    return score


@triton.jit
def normals_of(peaks: tl.tensor, sums: tl.tensor, entries: tl.tensor, inside: tl.tensor) -> tl.tensor:
    """The terms that are subtracted from a row's scores in turn: the highest, and the logarithm of the sum."""
    highest = tl.load(peaks + entries, mask=inside, other=-float("inf"))
    peak = tl.max(highest, 0)
    return peak, tl.log(tl.sum(tl.load(sums + entries, mask=inside, other=0.0) * tl.exp(highest - peak), 0))


@triton.jit
def key_of(scores: tl.tensor, names: tl.tensor) -> tl.tensor:
    """An int64 for each entry, larger for a higher score, and for the earlier of equal ones; NaN counts as infinity."""
    scores = tl.where(scores == scores, scores, float("inf"))
    bits = tl.where(scores == 0.0, 0.0, scores).to(tl.int32, bitcast=True)  # one zero, not two
    return ((bits ^ ((bits >> 31) & _LARGEST)).to(tl.int64) << 32) | (names ^ _LARGEST)


@triton.jit
def entry_of(keys: tl.tensor) -> tl.tensor:
    """The scores and the tokens of `key_of`."""
    bits = (keys >> 32).to(tl.int32)
    return (bits ^ ((bits >> 31) & _LARGEST)).to(tl.float32, bitcast=True), (keys & _LARGEST) ^ _LARGEST


def embedded(
    tokens: Tensor,
    positions: Tensor,
    words: Tensor,
    scale: float,
    places: Tensor | None,
    extra_embeddings: Tensor | None,
) -> Tensor:
    """The input of a decoder's first layer, N -> N x D, in the words' type, rounded as by PyTorch's operations.

    A token that has no embedding becomes NaN.

    `tokens` and `positions`: N, int64, positions beyond `places` as its last; `words`: V x D, multiplied by `scale`;
    `places`: embeddings of positions, P x D;
    `extra_embeddings`: those of extra symbols, with indices from V on, not scaled.
    """
    symbols, dim = words.shape
    x = words.new_empty(tokens.size(0), dim)
    tensors = (tokens, positions, words, places, extra_embeddings, x)
    numbers = (scale, symbols, *(0 if table is None else table.size(0) for table in (places, extra_embeddings)))
    options = {"dim": dim, "padded": triton.next_power_of_2(dim), **launch_options(x.device)}
    embed[(tokens.size(0),)](tensors, numbers, **options)
    return x


@triton.jit
def embed(tensors: tl.tuple, numbers: tl.tuple, dim: tl.constexpr, padded: tl.constexpr, pdl: tl.constexpr) -> None:
    """The embedding of one token."""
    tokens, positions, words, places, extra_embeddings, x = tensors
    scale, symbols, end, more = numbers
    row, columns = tl.program_id(0), tl.arange(0, padded)
    inside = columns < dim
    wait(pdl)
    token = tl.load(tokens + row)
    is_word = (token >= 0) & (token < symbols)
    found = tl.load(words + token * dim + columns, mask=inside & is_word, other=float("nan"))
    found = (found.to(tl.float32) * scale).to(found.dtype)
    if extra_embeddings is not None:
        is_extra = (token >= symbols) & (token < symbols + more)
        added = tl.load(
            extra_embeddings + (token - symbols) * dim + columns, mask=inside & is_extra, other=float("nan")
        )
        found = tl.where(is_word, found, added)
    if places is not None:
        place = tl.minimum(tl.load(positions + row), end - 1)
        added = tl.load(places + place * dim + columns, mask=inside, other=0.0)
        found = (found.to(tl.float32) + added.to(tl.float32)).to(found.dtype)
    tl.store(x + row * dim + columns, found, mask=inside)
