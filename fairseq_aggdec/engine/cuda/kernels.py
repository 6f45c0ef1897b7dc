"""Triton kernels for the layers of a Transformer, made for few tokens at a time.

A product has tiles of 16 tokens, however many there are, and adds in a fixed order. Attention adds positions in tiles
that are counted from position 0. So a token's values have the same bits alone, in a block and in a batch.

Every kernel loads its weights, which no kernel writes, before it waits for the kernel before it (programmatic dependent
launch). All that kernels write is read and written after the wait, what is needed last is asked for first.
"""

# mypy: ignore-errors
# the bodies are in Triton's language

import triton
import triton.language as tl

BLOCK_KEYS = tl.constexpr(64)
"""positions in a tile of attention"""
RELU = tl.constexpr(1)
"""as in native.products.ACTIVATIONS, as the next three"""
GELU = tl.constexpr(2)
SILU = tl.constexpr(3)
GELU_TANH = tl.constexpr(4)
_SIZES = [
    "num_rows",
    "width",
    "path_length",
    "capacity",
    "row_step",
    "head_step",
    "position_step",
    "hidden_step",
    "bias_step",
]
"""arguments that change from call to call; a kernel would be compiled anew where one becomes 1 or a multiple of 16"""
_INDICES = ["starts", "ends", "paths", "hidden", "bias"]
"""arguments that may be parts of a buffer at any address"""


@triton.jit
def wait(pdl: tl.constexpr):
    """Wait until all that earlier kernels wrote can be read; then let the next kernel start and load its weights."""
    if pdl:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def operand_rows(groups: tl.constexpr):
    """Rows of a factor as it is loaded, groups x 1 x 8 x 1 x 1; see `in_order`."""
    group = tl.arange(0, groups)[:, None, None, None, None]
    return group * 8 + tl.arange(0, 8)[:, None, None]


@triton.jit
def operand_columns(warps: tl.constexpr):
    """Columns of a factor as it is loaded, 1 x warps x 1 x 4 x 8; see `in_order`."""
    warp = tl.arange(0, warps)[None, :, None, None, None]
    of_thread = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)
    return warp * 32 + of_thread


@triton.jit
def in_order(x, groups: tl.constexpr, warps: tl.constexpr):
    """Rows and columns in the order in which tensor cores take them, groups x warps x 8 x 4 x 8 -> warps x rows x 32.

    The dimensions of what is loaded: groups of 8 rows, warps, rows of a group, threads, columns of a thread. A thread
    loads 8 columns of a row at once, and they stay in its registers:

        loaded by thread | 0                       | 1                       | 2           | 3
        column in memory | 0  1  2  3  4  5  6  7  | 8  9 10 11 12 13 14 15  | 16 ... 23   | 24 ... 31
        column of result | 0  1  8  9 16 17 24 25  | 2  3 10 11 18 19 26 27  | 4  5 ... 29 | 6  7 ... 31

    Where both factors of a product are in this order, it does not matter: the same columns meet.
    """
    parts = tl.reshape(x, (groups, warps, 8, 4, 2, 2, 2))
    parts = tl.permute(parts, (1, 0, 2, 4, 5, 3, 6))
    return tl.reshape(parts, (warps, 8 * groups, 32))


@triton.jit
def _row_sums(x):
    """The sum of each row, 1 or 2 x warps x 8 x 4 x 8 -> 1 or 2 x 1 x 8 x 1 x 1."""
    sums = tl.sum(tl.sum(tl.sum(x, 4), 3), 1)
    return sums[:, None, :, None, None]


@triton.jit
def _load_weights(
    parameters, in_features: tl.constexpr, block_size: tl.constexpr, warps: tl.constexpr
):
    """What a program of a product loads before it waits: weights, a norm's gains and shifts, biases.

    `parameters`: the norm's gain, shift and epsilon, of which the gain is None if there is no norm, the shift if it
    subtracts no mean; weights as `layers.packed` lays them out; biases or None.
    """
    gain, shift, epsilon, weights, bias = parameters
    groups: tl.constexpr = block_size // 8
    columns: tl.constexpr = 32 * warps  # of a piece
    pieces: tl.constexpr = (in_features + columns - 1) // columns
    group = tl.arange(0, groups)[:, None, None, None, None]
    warp = tl.arange(0, warps)[:, None, None, None]
    packed_row = (group * warps + warp) * 8 + operand_rows(1)
    start = (
        weights
        + tl.program_id(0) * (pieces * block_size * columns)
        + packed_row * 32
        + operand_columns(1)
    )
    # as x: a norm's weights need no move
    norm_columns = tl.broadcast_to(operand_columns(warps), (1, warps, 8, 4, 8))
    factors = ()
    gains = ()
    shifts = ()
    for piece in tl.static_range(pieces):
        factor = tl.load(start + piece * (block_size * columns))
        factor = in_order(factor, groups, warps)
        factors = factors + (tl.permute(factor, (0, 2, 1)),)  # noqa: RUF005
        if gain is not None:
            column = piece * columns + norm_columns
            mask = column < in_features
            gains = gains + (tl.load(gain + column, mask=mask, other=0.0),)  # noqa: RUF005
            if shift is not None:
                shifts = shifts + (tl.load(shift + column, mask=mask, other=0.0),)  # noqa: RUF005
    biases = tl.zeros((block_size,), tl.float32)
    if bias is not None:
        of_block = bias + tl.program_id(0) * block_size
        biases = tl.load(of_block + tl.arange(0, block_size)).to(tl.float32)
    return factors, gains, shifts, epsilon, biases


@triton.jit
def _multiply(
    x,
    loaded,
    normed,
    num_rows,
    loaded_rows: tl.constexpr,
    in_features: tl.constexpr,
    block_size: tl.constexpr,
    warps: tl.constexpr,
):
    """norm(x) W^T + b for 16 rows and `block_size` outputs, 16 x block_size in fp32, after the wait.

    Of each piece of 32 * warps columns, every warp multiplies 32. What the warps have added up is added at the end.

    Args:
        x: num_rows x in_features.
        loaded: by `_load_weights`.
        normed: num_rows x in_features, where the first programs write norm(x); or None.
        loaded_rows: 8 where only the first 8 rows are there, else 16. A norm takes most of the instructions, so it
            computes no others; the product has a place for 16, and multiplies the 8 twice.
    """
    factors, gains, shifts, epsilon, biases = loaded
    pieces: tl.constexpr = len(factors)
    columns = operand_columns(warps)
    row = operand_rows(loaded_rows // 8) + tl.program_id(1) * 16
    is_row = row < num_rows
    parts = ()
    for piece in tl.static_range(pieces):
        column = piece * (warps * 32) + columns
        part = tl.load(
            x + row * in_features + column,
            mask=is_row & (column < in_features),
            other=0.0,
        )
        parts = parts + (part,)  # noqa: RUF005

    if len(gains) > 0:
        # mean and deviation
        total = parts[0].to(tl.float32)
        for piece in tl.static_range(1, pieces):
            total += parts[piece].to(tl.float32)
        mean = _row_sums(total) / in_features if len(shifts) > 0 else 0.0
        total = tl.zeros_like(total)
        for piece in tl.static_range(pieces):
            difference = parts[piece].to(tl.float32) - mean
            is_column = piece * (warps * 32) + columns < in_features
            total += tl.where(is_column, difference * difference, 0.0)
        scale = 1.0 / tl.sqrt(_row_sums(total) / in_features + epsilon)

        # the norm, rounded as in memory
        normed_parts = ()
        for piece in tl.static_range(pieces):
            part = (
                (parts[piece].to(tl.float32) - mean)
                * scale
                * gains[piece].to(tl.float32)
            )
            if len(shifts) > 0:
                part += shifts[piece].to(tl.float32)
            part = part.to(x.dtype.element_ty)
            normed_parts = normed_parts + (part,)  # noqa: RUF005
            if normed is not None:
                column = piece * (warps * 32) + columns
                mask = is_row & (column < in_features) & (tl.program_id(0) == 0)
                tl.store(normed + row * in_features + column, part, mask=mask)
        parts = normed_parts

    # the product
    sums = tl.zeros((warps, 16, block_size), tl.float32)
    for piece in tl.static_range(pieces):
        part = tl.broadcast_to(parts[piece], (2, warps, 8, 4, 8))
        sums = tl.dot(in_order(part, 2, warps), factors[piece], sums)
    return tl.sum(sums, 0) + biases[None, :]


@triton.jit(do_not_specialize=_SIZES)
def product(
    x,
    parameters,
    normed,
    num_rows,
    other,
    y,
    in_features: tl.constexpr,
    out_features: tl.constexpr,
    activation: tl.constexpr,
    block_size: tl.constexpr,
    warps: tl.constexpr,
    loaded_rows: tl.constexpr,
    pdl: tl.constexpr,
):
    """y = norm(x) W^T + b + other, num_rows x out_features, or activation(norm(x) W^T + b) * other; see `_multiply`.

    Grid: out_features / block_size, num_rows / 16. `other`: a residual or a gate, num_rows x out_features, or None; it
    may be y.
    """
    loaded = _load_weights(parameters, in_features, block_size, warps)
    row = tl.program_id(1) * 16 + tl.arange(0, 16)
    column = tl.program_id(0) * block_size + tl.arange(0, block_size)
    offsets = row[:, None] * out_features + column[None, :]
    mask = (row < num_rows)[:, None]
    wait(pdl)
    if other is not None:
        others = tl.load(other + offsets, mask=mask, other=0.0).to(tl.float32)
    result = _multiply(
        x, loaded, normed, num_rows, loaded_rows, in_features, block_size, warps
    )
    if activation == RELU:
        result = tl.maximum(result, 0.0)
    elif activation == GELU:
        result = 0.5 * result * (1.0 + tl.erf(result * 0.7071067811865476))
    elif activation == SILU:
        result = result * tl.sigmoid(result)
    elif activation == GELU_TANH:
        # 1 + tanh(z) is twice the sigmoid of 2 z
        z = result * (0.7978845608028654 + 0.035677408136300125 * result * result)
        result = result * tl.sigmoid(2.0 * z)
    if other is not None:
        result = result + others if activation == 0 else result * others
    tl.store(y + offsets, result, mask=mask)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_INDICES)
def projections(
    x,
    parameters,
    normed,
    num_rows,
    query,
    memory,
    starts,
    paths,
    width,
    path_length,
    capacity,
    row_step,
    head_step,
    position_step,
    dim: tl.constexpr,
    query_dim: tl.constexpr,
    head_dim: tl.constexpr,
    block_size: tl.constexpr,
    warps: tl.constexpr,
    loaded_rows: tl.constexpr,
    pdl: tl.constexpr,
):
    """Queries, keys and values of norm(x), num_rows x dim; see `_multiply`.

    Grid: 3 query_dim / block_size, num_rows / 16.

    Args:
        query: num_rows x query_dim.
        memory: a layer's keys and values, B x H x capacity x 2 head_dim, of each position the key first. Token t of x
            is token t % width of sentence t // width. The three steps are strides in units of 2 head_dim elements.
        starts: B, the position of each sentence's first token; with `paths` the position of each token; None: 0.
        paths: num_rows x path_length, see `attention`; a token is written to its path's slot at its position; or None.
    """
    loaded = _load_weights(parameters, dim, block_size, warps)
    row = tl.program_id(1) * 16 + tl.arange(0, 16)
    is_row = row < num_rows
    sentence = row // width
    slot = row % width
    wait(pdl)

    # the slot of each token: at its position on its path, or after its sentence's start
    if paths is not None:
        position = tl.load(starts + row, mask=is_row, other=0)
        path = paths + row.to(tl.int64) * path_length
        slot = tl.load(path + position, mask=is_row, other=0).to(tl.int32)
    elif starts is not None:
        slot += tl.load(starts + sentence, mask=is_row, other=0).to(tl.int32)

    result = _multiply(x, loaded, normed, num_rows, loaded_rows, dim, block_size, warps)
    result = result.to(query.dtype.element_ty)

    # to the queries or to the memory: a tile lies within a head
    first = tl.program_id(0) * block_size
    column = tl.arange(0, block_size)
    if first < query_dim:
        column += first
        places = row[:, None] * query_dim + column[None, :]
        tl.store(query + places, result, mask=is_row[:, None])
    else:
        head = first % query_dim // head_dim
        column += first % head_dim + tl.where(first < 2 * query_dim, 0, head_dim)
        entry = (
            sentence.to(tl.int64) * row_step + head * head_step + slot * position_step
        )
        offsets = (entry * (2 * head_dim))[:, None] + column[None, :]
        mask = is_row & (slot < capacity)
        tl.store(memory + offsets, result, mask=mask[:, None])


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_INDICES)
def attention(
    query,
    memory,
    ends,
    paths,
    hidden,
    bias,
    y,
    width,
    path_length,
    capacity,
    row_step,
    head_step,
    position_step,
    hidden_step,
    bias_step,
    scale,
    dim: tl.constexpr,
    head_dim: tl.constexpr,
    per_token: tl.constexpr,
    pdl: tl.constexpr,
):
    """Attention of B x width tokens. Grid: B * heads, and width / 16 or, with `paths`, width.

    Args:
        query, y: B x width x dim, the elements of all heads.
        memory: keys and values as in `projections`.
        ends: the last position that each token attends to, B x width if `per_token`, else B: that of each sentence's
            first token, and one more for each token after it; None: all positions.
        paths: B x width x path_length, the slots of `memory` that a token attends to, position by position; None:
            slots are positions.
        hidden: B x capacity bytes in rows `hidden_step` apart, not 0 at positions that nothing attends to; or None.
        bias: heads x `bias_step`, added to scores by the distance of a key from its query, 0 in the middle; or None.
            With it a token's `ends` is its own position.
        scale: of scores.
    """
    heads: tl.constexpr = dim // head_dim
    sentence = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    element = tl.arange(0, head_dim)
    if paths is None:
        token = tl.program_id(1) * 16 + tl.arange(0, 16)
        is_token = token < width
    else:  # one token in a tile of 16, since no other has its keys
        token = tl.program_id(1) + tl.arange(0, 16)
        is_token = tl.arange(0, 16) == 0
        path = paths + (sentence * width + tl.program_id(1)).to(tl.int64) * path_length
    token += sentence * width
    offsets = token[:, None] * dim + head * head_dim + element[None, :]
    wait(pdl)
    q = tl.load(query + offsets, mask=is_token[:, None], other=0.0)

    # the last position of each token
    end = tl.zeros((16,), tl.int32) + (capacity - 1)
    if ends is not None:
        if per_token:
            last = tl.load(ends + token, mask=is_token, other=0)
        else:
            last = tl.load(ends + sentence) + token - sentence * width
        end = tl.minimum(end, last.to(tl.int32))
    positions = tl.max(tl.where(is_token, end, 0), 0) + 1

    # a query's own position
    own = token - sentence * width
    if ends is not None:
        own = end

    # softmax(q k^T) v, tile by tile
    of_head = (
        memory
        + (sentence.to(tl.int64) * row_step + head * head_step) * (2 * head_dim)
        + element[None, :]
    )
    # finite: where a source's padding is on the left, a tile may be hidden
    peak = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    sums = tl.zeros((16, head_dim), tl.float32)
    for first in range(0, positions, BLOCK_KEYS):
        position = first + tl.arange(0, BLOCK_KEYS)
        is_open = position < positions
        if hidden is not None:
            is_hidden = tl.load(
                hidden + sentence * hidden_step + position, mask=is_open, other=1
            )
            is_open = is_open & (is_hidden == 0)
        slot = position
        if paths is not None:
            slot = tl.load(path + position, mask=is_open, other=0).to(tl.int32)
        entry = of_head + (slot * position_step)[:, None] * (2 * head_dim)
        keys = tl.load(entry, mask=is_open[:, None], other=0.0)
        values = tl.load(entry + head_dim, mask=is_open[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(keys)) * scale
        if bias is not None:
            middle = bias_step // 2
            # a token behind the capacity may be further from its keys than the table reaches
            apart = tl.maximum(position[None, :] - own[:, None], -middle)
            of_distances = bias + head * bias_step + middle + apart
            scores += tl.load(of_distances, mask=is_open[None, :], other=0.0)
        attends = is_open[None, :] & (position[None, :] <= end[:, None])
        scores = tl.where(attends, scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        weights = tl.exp(scores - new_peak[:, None])
        decay = tl.exp(peak - new_peak)
        total = total * decay + tl.sum(weights, 1)
        sums = sums * decay[:, None] + tl.dot(weights.to(values.dtype), values)
        peak = new_peak
    result = sums / tl.where(total > 0.0, total, 1.0)[:, None]
    tl.store(y + offsets, result, mask=is_token[:, None])


@triton.jit
def norm(
    x,
    gain,
    shift,
    epsilon,
    y,
    dim: tl.constexpr,
    padded_dim: tl.constexpr,
    pdl: tl.constexpr,
):
    """y = norm(x), rows x dim; without a shift it subtracts no mean.

    Grid: rows. `padded_dim`: a power of two, at least dim.
    """
    column = tl.arange(0, padded_dim)
    is_column = column < dim
    gains = tl.load(gain + column, mask=is_column, other=0.0).to(tl.float32)
    if shift is not None:
        shifts = tl.load(shift + column, mask=is_column, other=0.0).to(tl.float32)
    wait(pdl)
    offsets = tl.program_id(0) * dim + column
    row = tl.load(x + offsets, mask=is_column, other=0.0).to(tl.float32)
    difference = row
    if shift is not None:
        difference = tl.where(is_column, row - tl.sum(row, 0) / dim, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(difference * difference, 0) / dim + epsilon)
    result = difference * scale * gains
    if shift is not None:
        result += shifts
    tl.store(y + offsets, result, mask=is_column)
