"""Triton kernels for the layers of a Transformer, made for few tokens at a time.

A product has tiles of 16 tokens, whatever their number, and adds in a fixed order. Attention adds positions in tiles
that are counted from position 0. So a token's values have the same bits alone, in a block and in a batch.

Every kernel loads its weights, which no kernel writes, before it waits for the kernel before it (programmatic dependent
launch). All that kernels write is read and written after the wait, what is needed last is asked for first.
"""

# mypy: ignore-errors
# the bodies are in Triton's language

import triton
import triton.language as tl

KEYS = tl.constexpr(64)
"""number of positions in a tile of attention"""
RELU, GELU, SILU = tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
"""as in native.products.ACTIVATIONS"""
_SIZES = ["rows", "width", "longest", "length", "row_step", "head_step", "position_step", "hidden_step"]
"""arguments that change from call to call; a kernel would be compiled anew where one becomes 1 or a multiple of 16"""
_NUMBERS = ["starts", "ends", "paths", "hidden"]
"""arguments that may be parts of a buffer at any address"""


@triton.jit
def wait(pdl: tl.constexpr):
    """Wait until all that earlier kernels wrote can be read; then let the next kernel start and load its weights."""
    if pdl:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def in_order(x, groups: tl.constexpr, warps: tl.constexpr):
    """Rows and columns in the order in which tensor cores take them, groups x warps x 8 x 4 x 8 -> warps x rows x 32.

    A thread loads 8 columns of a row at once, and they stay in its registers: where both factors of a product are in
    this order, it does not matter that columns 0 1 8 9 16 17 24 25 come first.
    """
    parts = tl.reshape(x, (groups, warps, 8, 4, 2, 2, 2))
    return tl.reshape(tl.permute(parts, (1, 0, 2, 4, 5, 3, 6)), (warps, 8 * groups, 32))


@triton.jit
def _row_sums(x):
    """The sum of each row, 1 or 2 x warps x 8 x 4 x 8 -> 1 or 2 x 1 x 8 x 1 x 1."""
    return tl.sum(tl.sum(tl.sum(x, 4), 3), 1)[:, None, :, None, None]


@triton.jit
def _tile_of(tile: tl.constexpr):
    """The 16 rows and the outputs of this program."""
    return tl.program_id(1) * 16 + tl.arange(0, 16), tl.program_id(0) * tile + tl.arange(0, tile)


@triton.jit
def _weights_of(factors, inputs: tl.constexpr, tile: tl.constexpr, warps: tl.constexpr):
    """What a program of a product loads before it waits: weights, a norm's gains and shifts, biases.

    `factors`: the norm's gain, shift and epsilon, of which the gain is None if there is none; weights as
    `layers.packed` lays them out; biases or None.
    """
    gain, shift, epsilon, weights, bias = factors
    groups: tl.constexpr = tile // 8
    pieces: tl.constexpr = (inputs + 32 * warps - 1) // (32 * warps)
    # the dimensions of what is loaded: groups of 8 rows, warps, rows of a group, threads, columns of a thread
    group, row = tl.arange(0, groups)[:, None, None, None, None], tl.arange(0, 8)[None, None, :, None, None]
    warp = tl.arange(0, warps)[None, :, None, None, None]
    place = tl.arange(0, 4)[None, None, None, :, None] * 8 + tl.arange(0, 8)[None, None, None, None, :]
    columns = warp * 32 + place
    spread = tl.broadcast_to(columns, (1, warps, 8, 4, 8))  # in the layout of x: a norm's weights need not be moved
    own = weights + tl.program_id(0) * (pieces * tile * warps * 32) + ((group * warps + warp) * 8 + row) * 32 + place
    w, gains, shifts = (), (), ()
    for piece in tl.static_range(pieces):
        loaded = tl.load(own + piece * (tile * warps * 32))
        w = w + (tl.permute(in_order(loaded, groups, warps), (0, 2, 1)),)  # noqa: RUF005
        if gain is not None:
            column = piece * (warps * 32) + spread
            gains = gains + (tl.load(gain + column, mask=column < inputs, other=0.0),)  # noqa: RUF005
            shifts = shifts + (tl.load(shift + column, mask=column < inputs, other=0.0),)  # noqa: RUF005
    added = tl.zeros((tile,), tl.float32)
    if bias is not None:
        added = tl.load(bias + tl.program_id(0) * tile + tl.arange(0, tile)).to(tl.float32)
    return w, gains, shifts, epsilon, added


@triton.jit
def _multiplied(
    x, loaded, kept, rows, some: tl.constexpr, inputs: tl.constexpr, tile: tl.constexpr, warps: tl.constexpr
):
    """norm(x) W^T + b for 16 rows and `tile` outputs, 16 x tile in fp32, behind the wait.

    Of each piece of 32 * warps columns, every warp multiplies 32. What the warps have added up is added at the end.

    Args:
        x: rows x inputs.
        loaded: by `_weights_of`.
        kept: rows x inputs, where the first programs write norm(x); or None.
        some: 8 where only the first 8 rows are there, else 16. A norm takes most of the instructions, so it computes
            no others; the product has a place for 16, and multiplies the 8 twice.
    """
    w, gains, shifts, epsilon, added = loaded
    pieces: tl.constexpr = len(w)
    columns = tl.arange(0, warps)[None, :, None, None, None] * 32
    columns += tl.arange(0, 4)[None, None, None, :, None] * 8 + tl.arange(0, 8)[None, None, None, None, :]
    row = tl.arange(0, 8)[None, None, :, None, None] + tl.program_id(1) * 16
    row += tl.arange(0, some // 8)[:, None, None, None, None] * 8
    parts = ()
    for piece in tl.static_range(pieces):
        column = piece * (warps * 32) + columns
        part = tl.load(x + row * inputs + column, mask=(row < rows) & (column < inputs), other=0.0)
        parts = parts + (part,)  # noqa: RUF005
    if len(gains) > 0:
        total = parts[0].to(tl.float32)
        for piece in tl.static_range(1, pieces):
            total += parts[piece].to(tl.float32)
        mean = _row_sums(total) / inputs
        total = tl.zeros_like(total)
        for piece in tl.static_range(pieces):
            difference = parts[piece].to(tl.float32) - mean
            total += tl.where(piece * (warps * 32) + columns < inputs, difference * difference, 0.0)
        scale = 1.0 / tl.sqrt(_row_sums(total) / inputs + epsilon)
        normed = ()
        for piece in tl.static_range(pieces):
            part = (parts[piece].to(tl.float32) - mean) * scale * gains[piece].to(tl.float32)
            part = (part + shifts[piece].to(tl.float32)).to(x.dtype.element_ty)
            normed = normed + (part,)  # noqa: RUF005
            if kept is not None:
                column = piece * (warps * 32) + columns
                is_own = (row < rows) & (column < inputs) & (tl.program_id(0) == 0)
                tl.store(kept + row * inputs + column, part, mask=is_own)
        parts = normed
    sums = tl.zeros((warps, 16, tile), tl.float32)
    for piece in tl.static_range(pieces):
        part = tl.broadcast_to(parts[piece], (2, warps, 8, 4, 8))
        sums = tl.dot(in_order(part, 2, warps), w[piece], sums)
    return tl.sum(sums, 0) + added[None, :]


@triton.jit(do_not_specialize=_SIZES)
def product(
    x,
    factors,
    kept,
    residual,
    y,
    rows,
    inputs: tl.constexpr,
    outputs: tl.constexpr,
    tile: tl.constexpr,
    warps: tl.constexpr,
    activation: tl.constexpr,
    some: tl.constexpr,
    pdl: tl.constexpr,
):
    """y = activation(norm(x) W^T + b) + residual, rows x outputs; see `_weights_of` and `_multiplied`.

    Grid: outputs / tile, rows / 16. `residual`: rows x outputs, or None; it may be y.
    """
    loaded = _weights_of(factors, inputs, tile, warps)
    row, column = _tile_of(tile)
    places, is_row = row[:, None] * outputs + column[None, :], (row < rows)[:, None]
    wait(pdl)
    if residual is not None:
        besides = tl.load(residual + places, mask=is_row, other=0.0).to(tl.float32)
    result = _multiplied(x, loaded, kept, rows, some, inputs, tile, warps)
    if activation == RELU:
        result = tl.maximum(result, 0.0)
    elif activation == GELU:
        result = 0.5 * result * (1.0 + tl.erf(result * 0.7071067811865476))
    elif activation == SILU:
        result = result * tl.sigmoid(result)
    if residual is not None:
        result += besides
    tl.store(y + places, result.to(y.dtype.element_ty), mask=is_row)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_NUMBERS)
def projections(
    x,
    factors,
    kept,
    query,
    memory,
    starts,
    paths,
    rows,
    width,
    longest,
    length,
    row_step,
    head_step,
    position_step,
    dim: tl.constexpr,
    head_dim: tl.constexpr,
    tile: tl.constexpr,
    warps: tl.constexpr,
    some: tl.constexpr,
    pdl: tl.constexpr,
):
    """Queries, keys and values of norm(x), rows x dim; see `_multiplied`. Grid: 3 dim / tile, rows / 16.

    Args:
        query: rows x dim.
        memory: a layer's keys and values, B x H x length x 2 head_dim, of each position the key first. Token t of x is
            token t % width of sentence t // width. The three steps are strides in units of 2 head_dim numbers.
        starts: B, the position of each sentence's first token; with `paths` the position of each token; None: 0.
        paths: rows x longest, see `attention`; a token is written to its path's slot at its position; or None.
    """
    loaded = _weights_of(factors, dim, tile, warps)
    row, column = _tile_of(tile)
    is_row, sentence, slot = row < rows, row // width, row % width
    wait(pdl)
    if paths is not None:
        position = tl.load(starts + row, mask=is_row, other=0)
        slot = tl.load(paths + row.to(tl.int64) * longest + position, mask=is_row, other=0).to(tl.int32)
    elif starts is not None:
        slot += tl.load(starts + sentence, mask=is_row, other=0).to(tl.int32)
    result = _multiplied(x, loaded, kept, rows, some, dim, tile, warps).to(query.dtype.element_ty)
    first = tl.program_id(0) * tile  # a tile lies within a head
    if first < dim:
        tl.store(query + row[:, None] * dim + column[None, :], result, mask=is_row[:, None])
    else:
        head = first % dim // head_dim
        number = first % head_dim + tl.where(first < 2 * dim, 0, head_dim) + tl.arange(0, tile)
        entry = (sentence.to(tl.int64) * row_step + head * head_step + slot * position_step) * (2 * head_dim)
        tl.store(memory + entry[:, None] + number[None, :], result, mask=(is_row & (slot < length))[:, None])


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_NUMBERS)
def attention(
    query,
    memory,
    ends,
    paths,
    hidden,
    y,
    width,
    longest,
    length,
    row_step,
    head_step,
    position_step,
    hidden_step,
    scale,
    dim: tl.constexpr,
    head_dim: tl.constexpr,
    per_token: tl.constexpr,
    pdl: tl.constexpr,
):
    """Attention of B x width tokens. Grid: B * heads, and width / 16 or, with `paths`, width.

    Args:
        query, y: B x width x dim.
        memory: keys and values as in `projections`.
        ends: the last position that each token attends to, B x width if `per_token`, else B: that of each sentence's
            first token, and one more for each token after it; None: all positions.
        paths: B x width x longest, the slots of `memory` that a token attends to, position by position; None: slots are
            positions.
        hidden: B x length bytes in rows `hidden_step` apart, not 0 at positions that nothing attends to; or None.
    """
    heads: tl.constexpr = dim // head_dim
    sentence, head, number = tl.program_id(0) // heads, tl.program_id(0) % heads, tl.arange(0, head_dim)
    if paths is None:
        token = tl.program_id(1) * 16 + tl.arange(0, 16)
        is_token = token < width
    else:  # one token in a tile of 16, since no other has its keys
        token = tl.program_id(1) + tl.arange(0, 16)
        is_token = tl.arange(0, 16) == 0
    token += sentence * width
    places = token[:, None] * dim + head * head_dim + number[None, :]
    wait(pdl)
    q = tl.load(query + places, mask=is_token[:, None], other=0.0)
    end = tl.zeros((16,), tl.int32) + (length - 1)
    if ends is not None:
        if per_token:
            last = tl.load(ends + token, mask=is_token, other=0)
        else:
            last = tl.load(ends + sentence) + token - sentence * width
        end = tl.minimum(end, last.to(tl.int32))
    count = tl.max(tl.where(is_token, end, 0), 0) + 1
    own = memory + (sentence.to(tl.int64) * row_step + head * head_step) * (2 * head_dim) + number[None, :]
    path = paths
    if paths is not None:
        path = paths + (sentence * width + tl.program_id(1)).to(tl.int64) * longest
    peak = tl.full((16,), -1e30, tl.float32)  # finite: where a source's padding is on the left, a tile may be hidden
    total, found = tl.zeros((16,), tl.float32), tl.zeros((16, head_dim), tl.float32)
    for first in range(0, count, KEYS):
        position = first + tl.arange(0, KEYS)
        is_open = position < count
        if hidden is not None:
            is_open = is_open & (tl.load(hidden + sentence * hidden_step + position, mask=is_open, other=1) == 0)
        slot = position
        if path is not None:
            slot = tl.load(path + position, mask=is_open, other=0).to(tl.int32)
        entry = own + (slot * position_step)[:, None] * (2 * head_dim)
        keys = tl.load(entry, mask=is_open[:, None], other=0.0)
        values = tl.load(entry + head_dim, mask=is_open[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(keys)) * scale
        scores = tl.where(is_open[None, :] & (position[None, :] <= end[:, None]), scores, -float("inf"))
        highest = tl.maximum(peak, tl.max(scores, 1))
        shares, shrunk = tl.exp(scores - highest[:, None]), tl.exp(peak - highest)
        total = total * shrunk + tl.sum(shares, 1)
        found = found * shrunk[:, None] + tl.dot(shares.to(values.dtype), values)
        peak = highest
    found = found / tl.where(total > 0.0, total, 1.0)[:, None]
    tl.store(y + places, found.to(y.dtype.element_ty), mask=is_token[:, None])


@triton.jit
def norm(x, residual, gain, shift, epsilon, y, dim: tl.constexpr, padded: tl.constexpr, pdl: tl.constexpr):
    """y = norm(x + residual), rows x dim. Grid: rows. `residual`: or None; `padded`: a power of two, at least dim."""
    column = tl.arange(0, padded)
    is_column = column < dim
    gains = tl.load(gain + column, mask=is_column, other=0.0).to(tl.float32)
    shifts = tl.load(shift + column, mask=is_column, other=0.0).to(tl.float32)
    wait(pdl)
    places = tl.program_id(0) * dim + column
    row = tl.load(x + places, mask=is_column, other=0.0).to(tl.float32)
    if residual is not None:
        row += tl.load(residual + places, mask=is_column, other=0.0).to(tl.float32)
        row = row.to(y.dtype.element_ty).to(tl.float32)  # as a sum in memory is rounded
    difference = tl.where(is_column, row - tl.sum(row, 0) / dim, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(difference * difference, 0) / dim + epsilon)
    tl.store(y + places, (difference * scale * gains + shifts).to(y.dtype.element_ty), mask=is_column)
