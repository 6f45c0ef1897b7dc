"""Triton kernels that do between two passes what the host does in `decoding.loop` and `decoding.beam.plain`.

The states that they change are those of `RowLoop.table` and `BeamLoop.table`. One program has one row, or one
sentence of a beam search, and no other program reads or writes what belongs to it.
"""

# mypy: ignore-errors
# the bodies are in Triton's language

import triton
import triton.language as tl

from fairseq_aggdec.engine.cuda.choice_kernels import entry_of, key_of
from fairseq_aggdec.engine.cuda.kernels import wait
from fairseq_aggdec.engine.loops import state as states

ENDED = tl.constexpr(states.ENDED)
GOES = tl.constexpr(states.GOES)
WAITS = tl.constexpr(states.WAITS)
_PLACES = tl.constexpr(64)
"""positions of a path that are copied at once"""


@triton.jit
def advance(
    state,
    found,
    limits,
    sizes,
    wide: tl.constexpr,
    places: tl.constexpr,
    resumes: tl.constexpr,
    reach: tl.constexpr,
    pdl: tl.constexpr,
):
    """Commit what a row's block has brought, and write its next block. Grid: R.

    Races: the pass before wrote `found`, which the wait makes visible; a program writes its own row alone. Barrier 1
    stands between its reads of the old block and the writes; barrier 2 between the writes of `texts` and their reads.
    The pass behind reads `block` and `positions` once this kernel has ended (it waits, too, or is no kernel with PDL).

    Args:
        state: the parts of `RowLoop.table`.
        found: 2 x R x W, the best token behind each of the block's and its log-probability, fp32.
        limits: pad, eos, min_len, max_len.
        sizes: T, W, S.
        wide, places: W and S rounded up to powers of two; 0 places: nothing is copied.
        resumes: see `SourceMatcher`.
        reach: the number of positions of the model whose draft the block has; 0: no model drafts.
    """
    lengths, going, drafted, copied, turns, guessed, left_out, block, positions = state[:9]
    contexts, following, copyable, texts, scores, history = state[9:]
    capacity, width, source = sizes
    row = tl.program_id(0)
    column = tl.arange(0, wide)
    inside = column < width
    own = row * width + column

    # what the pass has found behind the block, and the block's draft
    wait(pdl)
    length = tl.load(lengths + row)
    turn = tl.load(turns + row)
    many = tl.load(drafted + row)
    was_going = tl.load(going + row) == GOES
    eos = tl.load(limits + 1)
    max_len = tl.load(limits + 3)
    tokens = tl.load(found + own, mask=inside, other=0.0).to(tl.int64)
    behind = found + tl.num_programs(0) * width
    log_probs = tl.load(behind + own, mask=inside, other=0.0)
    drafts = tl.load(block + own + 1, mask=column + 1 < width, other=-1)
    tl.debug_barrier()  # 1

    # a model's draft ends with its first EOS
    if reach > 0:
        until = tl.where(drafts == eos, column + 1, wide)
        many = tl.minimum(many, tl.min(until, 0))

    # what does not pass, or ends, is the last token that is committed
    passes = (column < many) & (tokens == drafts)
    goes_on = passes & (tokens != eos)
    last = tl.min(tl.where(goes_on, wide, column), 0)
    is_last = column == last
    token = tl.sum(tl.where(is_last, tokens, 0), 0)
    accepted = last + tl.sum((passes & is_last).to(tl.int64), 0)
    is_new = (column <= last) & was_going
    text = row * capacity
    places_of_new = text + length + column
    tl.store(texts + places_of_new, tokens, mask=is_new)
    tl.store(scores + places_of_new, log_probs, mask=is_new)

    # the record of this turn
    counts = history + 3 * text + turn
    tl.store(counts, many, mask=was_going)
    tl.store(counts + capacity, accepted, mask=was_going)
    tl.store(counts + 2 * capacity, last + 1, mask=was_going)
    length += last + 1
    tl.store(lengths + row, length, mask=was_going)
    tl.store(turns + row, turn + 1, mask=was_going)
    left = tl.where(length + width > capacity, WAITS, GOES)
    tl.store(going + row, tl.where(token == eos, ENDED, left), mask=was_going)

    # the limit of the next draft by a model, which the graph makes before the next pass
    many = many * 0
    draft = tl.zeros((wide,), tl.int64)
    if reach > 0:
        room = tl.minimum(max_len + 1, reach) - length
        many = tl.minimum(width - 1, tl.maximum(room, 0))

    # the next copy
    if places > 0:
        tl.debug_barrier()  # 2
        place = tl.arange(0, places)
        of_row = row * source
        context = tl.load(contexts + of_row + place, mask=place < source, other=-2)

        # the place that is expected, see `SourceMatcher`
        expected = tl.load(copied + row) + last
        alive = context == token
        is_next = tl.sum(tl.where((place == expected + 1) & alive, 1, 0), 0) == 1
        skipped = tl.load(left_out + row)
        was_guess = tl.load(guessed + row) == 1
        skipped = tl.where(was_guess & (last == 0) & (is_next == 0), 1 - skipped, skipped)
        expected += tl.where(is_next, 1, skipped)
        last_place = tl.max(tl.where(context != -2, place, 0), 0)
        expected = tl.minimum(expected, last_place)

        # the shortest suffix of the output that occurs once in the source, or the longest one that occurs
        count = tl.sum(alive.to(tl.int32), 0)
        is_guess = count == 0
        depth = length * 0 + 1
        while count > 1:
            before = tl.load(texts + text + length - 1 - depth, mask=was_going, other=-3)
            is_there = (place >= depth) & (place < source)
            shifted = tl.load(contexts + of_row + place - depth, mask=is_there, other=-2)
            # the start symbol stands for itself, wherever else the source has it
            is_same = tl.where(depth < length - 1, shifted == before, place == depth)
            longer = alive & is_same
            count = tl.sum(longer.to(tl.int32), 0)
            alive = tl.where(count > 0, longer, alive)
            depth += 1

        # of its places the nearest, and of two the later
        is_earlier = tl.where(place < expected, 1, 0)
        far = 2 * tl.abs(place - expected) + is_earlier
        least = tl.min(tl.where(alive, far, 4 * places), 0)
        away = tl.where(least % 2 == 1, -(least // 2), least // 2)
        begins = expected + tl.where(is_guess, 0, away)
        tl.store(guessed + row, is_guess.to(tl.int64), mask=was_going)
        tl.store(left_out + row, skipped, mask=was_going)
        tl.store(copied + row, begins, mask=was_going)

        # the copy from there
        many = tl.load(copyable + of_row + begins, mask=(count == 1) | resumes, other=0)
        room = tl.minimum(width - 1, tl.maximum(max_len + 1 - length, 0))
        many = tl.minimum(many, room)
        is_copied = (column > 0) & (column <= many)
        draft = tl.load(following + of_row + begins + column - 1, mask=is_copied, other=0)

    # the next block
    tl.store(block + own, tl.where(column == 0, token, draft), mask=inside & was_going)
    tl.store(positions + own, length - 1 + column, mask=inside & was_going)
    tl.store(drafted + row, many, mask=was_going)


@triton.jit
def take_step(
    state,
    entries,
    limits,
    sizes,
    size: tl.constexpr,
    beams: tl.constexpr,
    kept: tl.constexpr,
    best: tl.constexpr,
    pdl: tl.constexpr,
):
    """A step of fairseq's beam search for one sentence, see `decoding.beam.search`; of equal sums the first. Grid: R.

    Races: the pass before wrote `entries`, which the wait makes visible; a program writes its own sentence alone.
    Barrier 1 stands between its reads of the old hypotheses and the writes; barrier 2, for each piece of the paths,
    between the reads of the parents' and the writes, and no piece reads what another writes.

    Args:
        state: the parts of `BeamLoop.table`.
        entries: values and names, R x W x E each: the best log-probabilities behind each hypothesis, in descending
            order, and their tokens.
        limits: pad, eos, min_len, max_len.
        sizes: T, W, E.
        size: N; `beams`, `kept`, `best`: W, E and 2N rounded up to powers of two.
    """
    counts, steps, going, finished, spoiled, tokens, positions, sums, paths, widths = state[:10]
    words, parents, totals, end_steps, end_parents, end_sums = state[10:]
    values, names = entries
    capacity, wide, many = sizes
    sentence = tl.program_id(0)
    first = sentence * wide
    beam = tl.arange(0, beams)
    place = tl.arange(0, kept)

    # the sums of all hypotheses with their entries
    wait(pdl)
    eos = tl.load(limits + 1)
    max_len = tl.load(limits + 3)
    count = tl.load(counts + sentence)
    step = tl.load(steps + sentence)
    done = tl.load(finished + sentence)
    was_going = tl.load(going + sentence) == GOES
    is_there = beam < count
    asked = is_there[:, None] & (place < many)[None, :]
    of_beam = (first + beam)[:, None] * many
    score = tl.load(values + of_beam + place[None, :], mask=asked, other=-float("inf"))
    before = tl.load(sums + first + beam, mask=is_there, other=0.0)
    score += before.to(tl.float32)[:, None]
    is_number = score == score
    not_numbers = tl.sum(tl.sum(tl.where(is_number, 0, 1), 1), 0)
    score = tl.where(is_number, score, -float("inf"))

    # the best 2N candidates in order: what each extends, and its token
    keys = key_of(score, beam[:, None] * kept + place[None, :])
    keys = tl.reshape(keys, (beams * kept,))
    score, which = entry_of(tl.topk(keys, best))
    rank = tl.arange(0, best)
    parent = which // kept
    of_parent = (first + parent) * many
    is_possible = (tl.where(score > -float("inf"), 1, 0) == 1) & was_going  # the interpreter's comparisons are floats
    token = tl.load(names + of_parent + which % kept, mask=is_possible, other=-1)
    tl.debug_barrier()  # 1

    # N words go on; an EOS among the best N ends a hypothesis
    is_word = is_possible & (token != eos)
    words_so_far = tl.cumsum(is_word.to(tl.int32), 0)
    number = words_so_far - is_word.to(tl.int32)
    goes_on = is_word & (number < size)
    is_end = is_possible & (token == eos)
    is_end = is_end & (number < size) & (rank < size)
    ends_so_far = tl.cumsum(is_end.to(tl.int32), 0)
    end = done + ends_so_far - is_end.to(tl.int32)
    to_keep = is_end & (end < size)
    ends = sentence * size + end
    tl.store(end_steps + ends, tl.zeros_like(end) + step, mask=to_keep)
    tl.store(end_parents + ends, parent.to(tl.int64), mask=to_keep)
    tl.store(end_sums + ends, score, mask=to_keep)
    tl.store(widths + sentence * capacity + step, count, mask=was_going)
    done += tl.sum(to_keep.to(tl.int64), 0)
    count = tl.sum(goes_on.to(tl.int64), 0)
    is_over = (done >= size) | (count == 0) | (step >= max_len)

    # of each new hypothesis: what it extends, its token and its sum; those that are missing repeat the last one
    own = tl.minimum(beam, count.to(tl.int32) - 1)
    chosen = goes_on[None, :] & (number[None, :] == own[:, None])
    extended = tl.sum(tl.where(chosen, parent[None, :], 0), 1)
    word = tl.sum(tl.where(chosen, token[None, :], 0), 1)
    total = tl.sum(tl.where(chosen, score[None, :], 0.0), 1)
    advances = (beam < wide) & was_going & (is_over == 0)
    past = (first + beam) * capacity + step
    tl.store(words + past, word, mask=advances)
    tl.store(parents + past, extended.to(tl.int64), mask=advances)
    tl.store(totals + past, total, mask=advances)
    tl.store(tokens + first + beam, word, mask=advances)
    tl.store(positions + first + beam, tl.zeros_like(word) + step + 1, mask=advances)
    tl.store(sums + first + beam, total, mask=advances)

    # its path: that of what it extends, and its own slot from its own position on
    slot = (step + 1) * size + own
    for begin in range(0, capacity, _PLACES):
        column = begin + tl.arange(0, _PLACES)
        written = advances[:, None] & (column < capacity)[None, :]
        from_parent = (first + extended)[:, None] * capacity + column[None, :]
        old = tl.load(paths + from_parent, mask=written, other=0)
        tl.debug_barrier()  # 2
        new = tl.where(column[None, :] <= step, old, slot[:, None])
        to_own = (first + beam)[:, None] * capacity + column[None, :]
        tl.store(paths + to_own, new, mask=written)

    # the sentence
    tl.store(finished + sentence, done, mask=was_going)
    tl.store(counts + sentence, count, mask=was_going & (is_over == 0))
    tl.store(steps + sentence, step + tl.where(is_over, 0, 1), mask=was_going)
    left = tl.where(step + 3 > capacity, WAITS, GOES)
    tl.store(going + sentence, tl.where(is_over, ENDED, left), mask=was_going)
    tl.store(spoiled + sentence, not_numbers, mask=was_going & (not_numbers > 0))
