"""Triton kernels for the layers of a Transformer, made for few tokens at a time.

A product has tiles of 16 tokens, whatever their number, and adds in a fixed order. Attention adds positions in tiles
that are counted from position 0. So a token's numbers have the same bits alone, in a block and in a batch.

Every kernel loads its weights, which no kernel writes, before it waits for the kernel before it (programmatic dependent
launch). All that kernels write is read and written behind the wait.
"""

# mypy: ignore-errors
# the bodies are Triton's language, not Python

import triton
import triton.language as tl

KEYS = tl.constexpr(64)
"""number of positions in a tile of attention"""
RELU, GELU = tl.constexpr(1), tl.constexpr(2)
"""numbers in native.modules.ACTIVATIONS"""


@triton.jit
def _wait(pdl: tl.constexpr):
    """Wait until all that earlier kernels wrote can be read, then let the next kernel load its weights."""
    if pdl:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def _in_order(x, G: tl.constexpr, S: tl.constexpr):
    """Rows and inputs in the order in which tensor cores take them, G x S x 8 x 4 x 8 -> S x 8G x 32.

    A thread loads 8 consecutive inputs of a row, and they stay in its registers: in a product with both factors in this
    order it does not matter that inputs 0 1 8 9 16 17 24 25 come first.
    """
    parts = tl.reshape(x, (G, S, 8, 4, 2, 2, 2))
    return tl.reshape(tl.permute(parts, (1, 0, 2, 4, 5, 3, 6)), (S, 8 * G, 32))


@triton.jit
def _row_sums(x):
    """Sums over the inputs of each row, 2 x S x 8 x 4 x 8 -> 2 x 1 x 8 x 1 x 1."""
    return tl.sum(tl.sum(tl.sum(x, 4), 3), 1)[:, None, :, None, None]


@triton.jit
def _multiplied(
    x,
    gain,
    shift,
    epsilon,
    weights,
    bias,
    normed,
    rows,
    K: tl.constexpr,
    BN: tl.constexpr,
    S: tl.constexpr,
    pdl: tl.constexpr,
):
    """norm(x) W^T + b for 16 rows and BN outputs, 16 x BN in single precision. Waits for earlier kernels.

    S warps share the K inputs: each takes 32 at a time. Their sums are added at the end.

    Args:
        x: rows x K.
        gain, shift: K, of the norm; None: x is not normalised.
        weights: as `layers._packed` lays them out.
        bias: a number for each output, or None.
        normed: rows x K, where the first programs write norm(x); or None.
    """
    PIECES: tl.constexpr = (K + 32 * S - 1) // (32 * S)
    G: tl.constexpr = BN // 8
    kind = x.dtype.element_ty
    split = tl.arange(0, S)[None, :, None, None, None]
    eighth = tl.arange(0, 8)[None, None, :, None, None]
    inputs = split * 32 + tl.arange(0, 4)[None, None, None, :, None] * 8 + tl.arange(0, 8)[None, None, None, None, :]
    spread = tl.broadcast_to(inputs, (1, S, 8, 4, 8))  # the layout of x: a norm's weights need not be moved
    group = tl.arange(0, G)[:, None, None, None, None]
    own = weights + tl.program_id(0) * (PIECES * BN * S * 32)
    places = ((group * S + split) * 8 + eighth) * 32 + inputs - split * 32
    w, gains, shifts = (), (), ()
    for piece in tl.static_range(PIECES):
        loaded = tl.load(own + piece * (BN * S * 32) + places)
        w = w + (tl.permute(_in_order(loaded, G, S), (0, 2, 1)),)
        if gain is not None:
            column = piece * (S * 32) + spread
            gains = gains + (tl.load(gain + column, mask=column < K, other=0.0),)
            shifts = shifts + (tl.load(shift + column, mask=column < K, other=0.0),)
    _, columns = _tile(BN)
    b = tl.zeros((BN,), tl.float32)
    if bias is not None:
        b = tl.load(bias + columns).to(tl.float32)
    _wait(pdl)
    row = tl.program_id(1) * 16 + tl.arange(0, 2)[:, None, None, None, None] * 8 + eighth
    parts = ()
    for piece in tl.static_range(PIECES):
        column = piece * (S * 32) + inputs
        parts = parts + (tl.load(x + row * K + column, mask=(row < rows) & (column < K), other=0.0),)
    if gain is not None:
        sums = parts[0].to(tl.float32)
        for piece in tl.static_range(1, PIECES):
            sums += parts[piece].to(tl.float32)
        mean = _row_sums(sums) / K
        sums = tl.zeros_like(sums)
        for piece in tl.static_range(PIECES):
            from_mean = tl.where(piece * (S * 32) + inputs < K, parts[piece].to(tl.float32) - mean, 0.0)
            sums += from_mean * from_mean
        scale = 1.0 / tl.sqrt(_row_sums(sums) / K + epsilon)
        others = ()
        for piece in tl.static_range(PIECES):
            part = (parts[piece].to(tl.float32) - mean) * scale * gains[piece].to(tl.float32)
            part = (part + shifts[piece].to(tl.float32)).to(kind)
            others = others + (part,)
            if normed is not None:
                column = piece * (S * 32) + inputs
                is_own = (row < rows) & (column < K) & (tl.program_id(0) == 0)
                tl.store(normed + row * K + column, part, mask=is_own)
        parts = others
    sums = tl.zeros((S, 16, BN), tl.float32)
    for piece in tl.static_range(PIECES):
        sums = tl.dot(_in_order(parts[piece], 2, S), w[piece], sums)
    return tl.sum(sums, 0) + b[None, :]


@triton.jit
def _tile(BN: tl.constexpr):
    """The rows, 16, and the outputs, BN, of this program."""
    return tl.program_id(1) * 16 + tl.arange(0, 16), tl.program_id(0) * BN + tl.arange(0, BN)


@triton.jit(do_not_specialize=["rows"])
def product(
    x,
    gain,
    shift,
    epsilon,
    weights,
    bias,
    normed,
    residual,
    y,
    rows,
    K: tl.constexpr,
    N: tl.constexpr,
    BN: tl.constexpr,
    S: tl.constexpr,
    ACTIVATION: tl.constexpr,
    pdl: tl.constexpr,
):
    """y = activation(norm(x) W^T + b) + residual, rows x N; see `_multiplied`. `residual`: rows x N, or None; may be y.

    Grid: N / BN, rows / 16.
    """
    v = _multiplied(x, gain, shift, epsilon, weights, bias, normed, rows, K, BN, S, pdl)
    row, column = _tile(BN)
    places, is_row = row[:, None] * N + column[None, :], (row < rows)[:, None]
    if ACTIVATION == RELU:
        v = tl.maximum(v, 0.0)
    elif ACTIVATION == GELU:
        v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    if residual is not None:
        v += tl.load(residual + places, mask=is_row, other=0.0).to(tl.float32)
    tl.store(y + places, v.to(y.dtype.element_ty), mask=is_row)


_SIZES = ["rows", "width", "longest", "length", "row_step", "head_step", "position_step", "hidden_step"]


@triton.jit(do_not_specialize=_SIZES)
def projections(
    x,
    gain,
    shift,
    epsilon,
    weights,
    bias,
    normed,
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
    D: tl.constexpr,
    HD: tl.constexpr,
    BN: tl.constexpr,
    S: tl.constexpr,
    pdl: tl.constexpr,
):
    """Queries, keys and values of norm(x), rows x D; see `_multiplied`. Grid: 3D / BN, rows / 16.

    Args:
        query: rows x D.
        memory: a layer's keys and values, B x H x length x 2HD, each position's key first. Row b of x is token b % width of
            sentence b // width. The three steps are strides in units of 2HD numbers.
        starts: B, the position of each sentence's first token; with `paths` rows numbers, the depth of each token;
            None: 0.
        paths: rows x longest, see `attention`; a token is written to its path's entry at its depth; or None.
    """
    v = _multiplied(x, gain, shift, epsilon, weights, bias, normed, rows, D, BN, S, pdl).to(query.dtype.element_ty)
    row, column = _tile(BN)
    is_row = row < rows
    first = tl.program_id(0) * BN
    if first < D:
        tl.store(query + row[:, None] * D + column[None, :], v, mask=is_row[:, None])
    else:
        sentence, slot = row // width, row % width
        if paths is not None:
            depth = tl.load(starts + row, mask=is_row, other=0)
            slot = tl.load(paths + row.to(tl.int64) * longest + depth, mask=is_row, other=0).to(tl.int32)
        elif starts is not None:
            slot += tl.load(starts + sentence, mask=is_row, other=0).to(tl.int32)
        is_value = first >= 2 * D
        head = (first % D) // HD
        number = first % HD + tl.where(is_value, HD, 0) + tl.arange(0, BN)
        places = (sentence.to(tl.int64) * row_step + head * head_step + slot * position_step) * (2 * HD)
        tl.store(memory + places[:, None] + number[None, :], v, mask=(is_row & (slot < length))[:, None])


@triton.jit(do_not_specialize=_SIZES)
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
    D: tl.constexpr,
    HD: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    pdl: tl.constexpr,
):
    """Attention of B x width tokens. Grid: B * D / HD, and width / 16, or width with `paths`.

    Args:
        query, y: B x width x D.
        memory: keys and values as in `projections`.
        ends: the last position that each token attends to, B x width if PER_TOKEN, else B: that of each sentence's
            first token, and one more for each token behind it; None: all positions.
        paths: B x width x longest, the slots of `memory` that a token attends to, position by position; None: slots are
            positions.
        hidden: B x length bytes, with rows `hidden_step` apart, not 0 at positions that nothing attends to; or None.
    """
    H: tl.constexpr = D // HD
    sentence, head = tl.program_id(0) // H, tl.program_id(0) % H
    number = tl.arange(0, HD)
    if paths is None:
        token = tl.program_id(1) * 16 + tl.arange(0, 16)
        is_token = token < width
    else:  # the keys of one token only
        token = tl.program_id(1) + tl.arange(0, 16)
        is_token = tl.arange(0, 16) == 0
    places = (sentence * width + token)[:, None] * D + head * HD + number[None, :]
    _wait(pdl)
    q = tl.load(query + places, mask=is_token[:, None], other=0.0)
    end = tl.zeros((16,), tl.int32) + (length - 1)
    if ends is not None:
        if PER_TOKEN:
            end = tl.minimum(end, tl.load(ends + sentence * width + token, mask=is_token, other=0).to(tl.int32))
        else:
            end = tl.minimum(end, tl.load(ends + sentence).to(tl.int32) + token)
    count = tl.max(tl.where(is_token, end, 0), 0) + 1
    own = memory + (sentence.to(tl.int64) * row_step + head * head_step) * (2 * HD)
    peak = tl.full((16,), -1e30, tl.float32)  # finite: the first tile of a source with padding on the left is hidden
    total = tl.zeros((16,), tl.float32)
    found = tl.zeros((16, HD), tl.float32)
    for first in range(0, count, KEYS):
        position = first + tl.arange(0, KEYS)
        is_visible = position < count
        if hidden is not None:
            byte = tl.load(hidden + sentence * hidden_step + position, mask=is_visible, other=1)
            is_visible = is_visible & (byte == 0)
        slot = position
        if paths is not None:
            path = paths + (sentence * width + tl.program_id(1)).to(tl.int64) * longest
            slot = tl.load(path + position, mask=is_visible, other=0).to(tl.int32)
        entry = own + (slot * position_step)[:, None] * (2 * HD) + number[None, :]
        keys = tl.load(entry, mask=is_visible[:, None], other=0.0)
        values = tl.load(entry + HD, mask=is_visible[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(keys)) * scale
        scores = tl.where(is_visible[None, :] & (position[None, :] <= end[:, None]), scores, -float("inf"))
        new = tl.maximum(peak, tl.max(scores, 1))
        shares = tl.exp(scores - new[:, None])
        shrunk = tl.exp(peak - new)
        total = total * shrunk + tl.sum(shares, 1)
        found = found * shrunk[:, None] + tl.dot(shares.to(values.dtype), values)
        peak = new
    found = found / tl.where(total > 0.0, total, 1.0)[:, None]
    tl.store(y + places, found.to(y.dtype.element_ty), mask=is_token[:, None])


@triton.jit
def norm(x, gain, shift, epsilon, y, D: tl.constexpr, BLOCK: tl.constexpr, pdl: tl.constexpr):
    """y = norm(x), rows x D. Grid: rows. `BLOCK`: a power of two, at least D."""
    column = tl.arange(0, BLOCK)
    is_column = column < D
    g = tl.load(gain + column, mask=is_column, other=0.0).to(tl.float32)
    s = tl.load(shift + column, mask=is_column, other=0.0).to(tl.float32)
    _wait(pdl)
    places = tl.program_id(0) * D + column
    v = tl.load(x + places, mask=is_column, other=0.0).to(tl.float32)
    from_mean = tl.where(is_column, v - tl.sum(v, 0) / D, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(from_mean * from_mean, 0) / D + epsilon)
    tl.store(y + places, (from_mean * scale * g + s).to(y.dtype.element_ty), mask=is_column)
