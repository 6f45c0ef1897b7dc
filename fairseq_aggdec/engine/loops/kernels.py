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
_BLOCK_POSITIONS = tl.constexpr(64)
"""positions of a path that are copied at once"""


@triton.jit
def advance(
    state,
    found,
    limits,
    sizes,
    padded_width: tl.constexpr,
    padded_source: tl.constexpr,
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
        padded_width, padded_source: W and S rounded up to powers of two; a source of 0: nothing is copied.
        resumes: see `SourceMatcher`.
        reach: the number of positions of the model whose draft the block has; 0: no model drafts.
    """
    (
        lengths,
        going,
        drafted,
        copied,
        turns,
        guessed,
        left_out,
        block,
        positions,
        contexts,
        following,
        copyable,
        texts,
        scores,
        history,
    ) = state
    capacity, width, source_length = sizes
    row = tl.program_id(0)
    column = tl.arange(0, padded_width)
    is_column = column < width
    of_block = row * width + column

    # what the pass has found behind the block, and the block's draft
    wait(pdl)
    is_going = tl.load(going + row) == GOES
    length = tl.load(lengths + row)
    turn = tl.load(turns + row)
    draft_length = tl.load(drafted + row)
    eos = tl.load(limits + 1)
    max_len = tl.load(limits + 3)
    tokens = tl.load(found + of_block, mask=is_column, other=0.0).to(tl.int64)
    found_log_probs = found + tl.num_programs(0) * width
    log_probs = tl.load(found_log_probs + of_block, mask=is_column, other=0.0)
    draft = tl.load(block + of_block + 1, mask=column + 1 < width, other=-1)
    if not is_going:  # it has ended, or waits
        return
    tl.debug_barrier()  # 1

    # a model's draft ends with its first EOS
    if reach > 0:
        until = tl.where(draft == eos, column + 1, padded_width)
        draft_length = tl.minimum(draft_length, tl.min(until, 0))

    # what does not pass, or ends, is the last token that is committed
    passes = (column < draft_length) & (tokens == draft)
    goes_on = passes & (tokens != eos)
    last = tl.min(tl.where(goes_on, padded_width, column), 0)
    is_last = column == last
    token = tl.sum(tl.where(is_last, tokens, 0), 0)
    accepted = last + tl.sum((passes & is_last).to(tl.int64), 0)
    is_new = column <= last
    text = row * capacity
    of_new = text + length + column
    tl.store(texts + of_new, tokens, mask=is_new)
    tl.store(scores + of_new, log_probs, mask=is_new)

    # the record of this turn
    counts = history + 3 * text + turn
    tl.store(counts, draft_length)
    tl.store(counts + capacity, accepted)
    tl.store(counts + 2 * capacity, last + 1)
    length += last + 1
    tl.store(lengths + row, length)
    tl.store(turns + row, turn + 1)
    goes_or_waits = tl.where(length + width > capacity, WAITS, GOES)
    status = tl.where(token == eos, ENDED, goes_or_waits)
    tl.store(going + row, status)

    # the limit of the next draft by a model, which the graph makes before the next pass
    draft_length = 0
    draft = 0
    if reach > 0:
        room = tl.minimum(max_len + 1, reach) - length
        draft_length = tl.minimum(width - 1, tl.maximum(room, 0))

    # the next copy
    if padded_source > 0:
        tl.debug_barrier()  # 2
        place = tl.arange(0, padded_source)
        source = row * source_length
        context = tl.load(
            contexts + source + place, mask=place < source_length, other=-2
        )

        # the place that is expected, see `SourceMatcher`
        expected = tl.load(copied + row) + last
        matches = context == token
        is_next = (place == expected + 1) & matches
        is_next = tl.sum(is_next.to(tl.int32), 0) == 1
        skipped = tl.load(left_out + row)
        was_guess = tl.load(guessed + row) == 1
        was_wrong = was_guess & (last == 0) & (is_next == 0)
        skipped = tl.where(was_wrong, 1 - skipped, skipped)
        expected += tl.where(is_next, 1, skipped)
        last_place = tl.max(tl.where(context != -2, place, 0), 0)
        expected = tl.minimum(expected, last_place)

        # the shortest suffix of the output that occurs once in the source, or the longest one that occurs
        count = tl.sum(matches.to(tl.int32), 0)
        is_guess = count == 0
        depth = 1
        while count > 1:
            before = tl.load(texts + text + length - 1 - depth)
            is_there = (place >= depth) & (place < source_length)
            shifted = tl.load(
                contexts + source + place - depth, mask=is_there, other=-2
            )
            # the start symbol stands for itself, wherever else the source has it
            is_same = tl.where(depth < length - 1, shifted == before, place == depth)
            longer = matches & is_same
            count = tl.sum(longer.to(tl.int32), 0)
            matches = tl.where(count > 0, longer, matches)
            depth += 1

        # of its places the nearest, and of two the later
        is_earlier = tl.where(place < expected, 1, 0)
        distances = 2 * tl.abs(place - expected) + is_earlier
        nearest = tl.min(tl.where(matches, distances, 4 * padded_source), 0)
        step = nearest // 2
        step = tl.where(nearest % 2 == 1, -step, step)
        begin = expected + tl.where(is_guess, 0, step)
        tl.store(guessed + row, is_guess)
        tl.store(left_out + row, skipped)
        tl.store(copied + row, begin)

        # the copy from there
        is_found = (count == 1) | resumes
        available = tl.load(copyable + source + begin, mask=is_found, other=0)
        room = tl.maximum(max_len + 1 - length, 0)
        room = tl.minimum(width - 1, room)
        draft_length = tl.minimum(available, room)
        is_copied = (column > 0) & (column <= draft_length)
        draft = tl.load(
            following + source + begin + column - 1, mask=is_copied, other=0
        )

    # the next block
    next_tokens = tl.where(column == 0, token, draft)
    tl.store(block + of_block, next_tokens, mask=is_column)
    tl.store(positions + of_block, length - 1 + column, mask=is_column)
    tl.store(drafted + row, draft_length)


@triton.jit
def take_step(
    state,
    entries,
    limits,
    sizes,
    size: tl.constexpr,
    padded_beams: tl.constexpr,
    padded_entries: tl.constexpr,
    padded_candidates: tl.constexpr,
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
        size: N; `padded_beams`, `padded_entries`, `padded_candidates`: W, E and 2N rounded up to powers of two.
    """
    (
        counts,
        steps,
        going,
        finished,
        spoiled,
        tokens,
        positions,
        sums,
        paths,
        widths,
        words,
        parents,
        totals,
        end_steps,
        end_parents,
        end_sums,
    ) = state
    values, names = entries
    capacity, width, num_entries = sizes
    sentence = tl.program_id(0)
    first = sentence * width
    beam = tl.arange(0, padded_beams)
    place = tl.arange(0, padded_entries)

    # the sums of all hypotheses with their entries
    wait(pdl)
    is_going = tl.load(going + sentence) == GOES
    eos = tl.load(limits + 1)
    max_len = tl.load(limits + 3)
    count = tl.load(counts + sentence)
    step = tl.load(steps + sentence)
    done = tl.load(finished + sentence)
    is_beam = beam < count
    is_entry = is_beam[:, None] & (place < num_entries)[None, :]
    of_beam = (first + beam)[:, None] * num_entries
    score = tl.load(
        values + of_beam + place[None, :], mask=is_entry, other=-float("inf")
    )
    before = tl.load(sums + first + beam, mask=is_beam, other=0.0)
    if not is_going:  # it has ended, or waits
        return
    score += before.to(tl.float32)[:, None]
    is_number = score == score
    not_numbers = tl.sum(tl.sum(tl.where(is_number, 0, 1), 1), 0)
    score = tl.where(is_number, score, -float("inf"))

    # the best 2N candidates in order: what each extends, and its token
    keys = key_of(score, beam[:, None] * padded_entries + place[None, :])
    keys = tl.reshape(keys, (padded_beams * padded_entries,))
    score, candidate = entry_of(tl.topk(keys, padded_candidates))
    rank = tl.arange(0, padded_candidates)
    parent = candidate // padded_entries
    of_parent = (first + parent) * num_entries
    # the interpreter's comparisons are floats
    is_possible = tl.where(score > -float("inf"), 1, 0) == 1
    token = tl.load(
        names + of_parent + candidate % padded_entries, mask=is_possible, other=-1
    )
    tl.debug_barrier()  # 1

    # N words go on
    is_word = is_possible & (token != eos)
    words_so_far = tl.cumsum(is_word.to(tl.int32), 0)
    number = words_so_far - is_word.to(tl.int32)
    goes_on = is_word & (number < size)

    # an EOS among the best N ends a hypothesis
    is_end = is_possible & (token == eos) & (number < size) & (rank < size)
    ends_so_far = tl.cumsum(is_end.to(tl.int32), 0)
    end = done + ends_so_far - is_end.to(tl.int32)
    is_kept = is_end & (end < size)
    of_end = sentence * size + end
    tl.store(end_steps + of_end, step, mask=is_kept)
    tl.store(end_parents + of_end, parent, mask=is_kept)
    tl.store(end_sums + of_end, score, mask=is_kept)
    tl.store(widths + sentence * capacity + step, count)
    done += tl.sum(is_kept.to(tl.int64), 0)
    count = tl.sum(goes_on.to(tl.int64), 0)
    is_over = (done >= size) | (count == 0) | (step >= max_len)

    # of each new hypothesis: what it extends, its token and its sum; those that are missing repeat the last one
    new_beam = tl.minimum(beam, count.to(tl.int32) - 1)
    is_chosen = goes_on[None, :] & (number[None, :] == new_beam[:, None])
    extended = tl.sum(tl.where(is_chosen, parent[None, :], 0), 1)
    word = tl.sum(tl.where(is_chosen, token[None, :], 0), 1)
    total = tl.sum(tl.where(is_chosen, score[None, :], 0.0), 1)
    advances = (beam < width) & (is_over == 0)
    past = (first + beam) * capacity + step
    tl.store(words + past, word, mask=advances)
    tl.store(parents + past, extended, mask=advances)
    tl.store(totals + past, total, mask=advances)
    tl.store(tokens + first + beam, word, mask=advances)
    tl.store(positions + first + beam, step + 1, mask=advances)
    tl.store(sums + first + beam, total, mask=advances)

    # its path: that of what it extends, and its own slot from its own position on
    slot = (step + 1) * size + new_beam
    path = (first + beam)[:, None] * capacity
    parent_path = (first + extended)[:, None] * capacity
    for begin in range(0, capacity, _BLOCK_POSITIONS):
        column = begin + tl.arange(0, _BLOCK_POSITIONS)[None, :]
        is_written = advances[:, None] & (column < capacity)
        old = tl.load(paths + (parent_path + column), mask=is_written, other=0)
        tl.debug_barrier()  # 2
        new = tl.where(column <= step, old, slot[:, None])
        tl.store(paths + (path + column), new, mask=is_written)

    # the sentence
    tl.store(finished + sentence, done)
    tl.store(counts + sentence, count, mask=is_over == 0)
    tl.store(steps + sentence, step + tl.where(is_over, 0, 1))
    goes_or_waits = tl.where(step + 3 > capacity, WAITS, GOES)
    status = tl.where(is_over, ENDED, goes_or_waits)
    tl.store(going + sentence, status)
    tl.store(spoiled + sentence, not_numbers, mask=not_numbers > 0)
