"""Greedy search, drafts of the source or by a model, and beam search whose turns follow each other on the device.

The loops of `decoding` wait for every pass and judge it on the host. Here one kernel behind a pass does what they do
(`engine.cuda.loops`): it commits tokens and writes the next block, or takes a step of the beam. Where a model drafts,
its pass is a part of the same graph. The host launches pass after pass, sees one pass late whether sentences have
ended, and reads everything at once. It reads, and goes on with another graph, where half of the rows have ended, and
where a sentence needs more room than the state has.

The records are those of `decoding.loop.draft_verify_accept` and of `decoding.beam.plain.plain_beam_search`. These
decode what `may_loop` leaves to them, and what fails here, and remain the definition.
"""

import logging
import math
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamStats, Output, best_first, output_of
from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.input_guided import FOREIGN, SourceCopyDrafter
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.outputs import fewest_moves
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.tokens import Decoded, Order
from fairseq_aggdec.decoding.verification import EXACT, Acceptance
from fairseq_aggdec.engine.choose_backend import has_triton
from fairseq_aggdec.engine.cuda.launching import give_up, launch_options
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DeviceDraft, DraftDecoder
from fairseq_aggdec.engine.graphs import buffers
from fairseq_aggdec.engine.graphs.buffers import positions_bucket, rows_bucket
from fairseq_aggdec.engine.graphs.captured import LIMITS, Captured, Shape, limits_of
from fairseq_aggdec.engine.graphs.graphs import Function
from fairseq_aggdec.engine.switches import is_on
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)

_LARGEST_BEAM = 32  # N; a program sorts N (N + 2) candidates in its registers
_WAITS = 2  # as in engine.cuda.loops
RowState = namedtuple(
    "RowState",
    "lengths going drafted copied turns guessed left_out block positions contexts following copyable texts log_probs "
    "history",
)
"""The state of a loop over blocks: R rows, W tokens in a block, S in a source, T positions.

lengths, turns: R x 1, the length of each text, the start symbol counted; the number of turns taken
going: R x 1, 0 where a sentence has ended, else `cuda.loops.GOES` or `WAITS`
drafted, copied: R x 1, the length of the block's draft, of a model's the limit, and its first place in `following`
guessed, left_out: R x 1, whether a copy is a guess; the number of tokens that the next guess leaves out
block, positions: R x W, the last token and its draft, and their positions
contexts, following, copyable: R x S, the token before each place of a source, -2 before the first and behind the last;
see `SourceMatcher.source` and `copyable`. Where a model drafts, only `following` is there, R x T k, the drafts
of all turns
texts, log_probs: R x T, the output by position, the first position 1, and its log-probabilities
history: R x 4 x T, of each turn the number of drafted, of accepted and of committed tokens, and `copied`

Parts are int64, and log-probabilities float64, which holds single precision exactly.
"""
BeamState = namedtuple(
    "BeamState",
    "counts steps going finished spoiled tokens positions sums paths widths words parents totals end_steps end_parents "
    "end_sums",
)
"""The state of a beam search of R sentences: N hypotheses in W places, T steps. See `RowState`.

counts, finished: R x 1, the number of a sentence's hypotheses, the last of which fills up W; of the finished ones
steps, going, spoiled: R x 1, the number of steps taken; see `RowState`; not 0 where scores were NaN
tokens, positions, sums: R x W, what is read next, where, and the cumulative log-probability
paths: R x W x T, cache slots, see `TreeBlock`
widths: R x T, `counts` before each step
words, parents, totals: R x W x T, the hypotheses behind each step: last token, place of what it extends, `sums`
end_steps, end_parents, end_sums: R x N, the finished hypotheses: step and place of what EOS has extended, `sums`
"""
_FLOATS = {"log_probs", "sums", "totals", "end_sums"}
_State = Any  # one of both, of tensors on the device, of arrays on the host, or of sizes


def may_loop(
    verifiers: Iterable[Any],
    rules: SearchRules,
    drafter: Drafter | None = None,
    accept: Acceptance = EXACT,
    schedule: DraftSchedule = VERIFY_ALL,
) -> bool:
    """Whether a loop on the device decodes a batch: AGGDEC_GPU=loops, one captured engine, and nothing it has not.

    `drafter`: None: a beam search that takes a step in each pass.
    """
    if not is_on("loops"):
        return False
    engine, *others = verifiers
    captured = engine.captured if isinstance(engine, Decoder) else None
    if others or captured is None or not captured.allows(rules, Shape(1, 1, 1, 1), 0):
        return False
    is_known = type(drafter) in (type(None), NoDrafter, SourceCopyDrafter)
    if type(drafter) is BlockDrafter and isinstance(drafter.model, DraftDecoder):
        is_known = drafter.model.captured is not None
    return is_known and accept.is_exact and schedule is VERIFY_ALL and has_triton(captured.device)


def decode_rows(
    verifier: Any, rules: SearchRules, drafter: Drafter, first_tokens: Tensor, keep_drafts: bool
) -> list[Decoded] | None:
    """As `draft_verify_accept` where `may_loop`; None where that decodes the batch, from its beginning.

    `verifier`: ready to score this batch from position 0; it and `drafter` must be made ready again after None.
    """
    return _decoded(_RowLoop(verifier.captured, rules, drafter, keep_drafts), first_tokens)


def search_beams(
    verifier: Any, rules: SearchRules, options: BeamOptions, first_tokens: Tensor
) -> list[tuple[list[Output], BeamStats]] | None:
    """As `plain_beam_search`; see `decode_rows`."""
    if options.size > _LARGEST_BEAM:
        return None
    return _decoded(_BeamLoop(verifier.captured, rules, options), first_tokens)


class _Loop:
    """A loop over the captured passes of a decoder."""

    turn: Callable[[_State, Shape], Function]
    """a pass over a state on the device, and what the host does behind it"""

    def __init__(self, captured: Captured, rules: SearchRules, width: int, slots: int, room: int) -> None:
        """`width`: W; `slots`: of the cache, for each of T; `room`: T of the longest output."""
        self.captured, self._rules, self._width, self._slots = captured, rules, width, slots
        self.memories: list[Any] = [captured.memory]
        """what keeps the rows that are left"""
        self._key: Hashable = None  # of what a turn has beside the pass
        self.capacity = positions_bucket(min(room, 2 * captured.memory.cache.source + width))
        """T, with which the batch begins"""

    def shape(self, capacity: int) -> Shape | None:
        """The sizes of a pass over the rows that are left; None: it is too large for a graph."""
        shape = self.captured.fitting(self._width, positions_bucket(capacity * self._slots))
        return shape if shape is not None and self.captured.allows(self._rules, shape, 0) else None

    def repeat(self, state: Tensor, sizes: _State, shape: Shape) -> Tensor:
        """Take turns from a state on the host on, until `_is_due`; return the state then, on the host."""
        captured, rules = self.captured, self._rules

        def make() -> tuple[Function, list[Tensor]]:
            own = torch.zeros_like(state, device=captured.device)
            return self.turn(_parts(own, sizes), shape), [own]

        key = (type(sizes).__name__, self._slots, len(state), shape, rules.pad, rules.eos, captured.memory.temperature)
        graph = captured.graphs.get((*key, self._key), LIMITS, make)
        graph.numbers()[:] = limits_of(rules)
        graph.inputs[0].copy_(state)
        captured.graphs.repeat(graph, _is_due)
        whole: Tensor = graph.inputs[0].cpu()
        return whole


class _RowLoop(_Loop):
    """Greedy search, with drafts or without, of one batch."""

    def __init__(self, captured: Captured, rules: SearchRules, drafter: Drafter, keep_drafts: bool) -> None:
        self._matchers = drafter.matchers if isinstance(drafter, SourceCopyDrafter) else []
        longest = max((len(own.source) for own in self._matchers), default=0)
        self._places, self._keep_drafts = buffers.source_bucket(longest) if longest else 0, keep_drafts
        width = buffers.width_bucket(1 + min(rules.max_len, longest))
        self._model: Any = None
        self._draft: DeviceDraft | None = None
        self._reach = 0
        if isinstance(drafter, BlockDrafter):
            self._model, self._reach, width = drafter.model, drafter.model.max_positions, 1 + drafter.block_size
        super().__init__(captured, rules, width, 1, rules.max_len + 1 + width)
        self._key = self._resumes = any(own.resumes for own in self._matchers)
        self.memories += [own for own in [self._model] if own is not None]

    def sizes(self, rows: int, capacity: int) -> _State:
        one, block, source, text = (rows, 1), (rows, self._width), (rows, self._places), (rows, capacity)
        following = source if self._model is None else (rows, capacity * (self._width - 1))
        return RowState._make([*[one] * 7, block, block, source, following, source, text, text, (rows, 4, capacity)])

    def shape(self, capacity: int) -> Shape | None:
        shape = super().shape(capacity)
        if shape is None or self._model is None:
            return shape
        found = self._model.draft_on_device(capacity, self._width - 1)
        if found is None:
            return None
        self._key, self._draft = (found[0], self._rules.symbols), found[1]
        return shape

    def start(self, state: _State, first_tokens: np.ndarray) -> None:
        """Fill in a state of zeros before the first turn."""
        state.lengths[:] = state.going[:] = state.left_out[:] = 1
        state.block[:, 0], state.positions[:], state.contexts[:] = first_tokens, np.arange(self._width), -2
        rules = self._rules
        for row, own in enumerate(self._matchers):
            length, many = len(own.source), min(own.copyable[0], rules.max_len, self._width - 1)
            known = np.clip(own.source, 0, math.inf if rules.symbols is None else rules.symbols - 1)  # see `Outputs`
            before = np.where(np.array(own.source[:-1]) == rules.eos, FOREIGN, own.source[:-1])
            state.contexts[row, 1:length], state.copyable[row, :length] = before, own.copyable[:-1]
            state.following[row, :length], state.block[row, 1 : 1 + many] = known, known[:many]
            state.drafted[row] = many
        if self._model is not None:
            self._model.begin()
            state.texts[:, 0], state.drafted[:] = first_tokens, min(self._width - 1, rules.max_len, self._reach - 1)

    def turn(self, state: _State, shape: Shape) -> Function:
        from fairseq_aggdec.engine.cuda.loops import advance  # imports Triton

        captured, rules, draft = self.captured, self._rules, self._draft
        sizes = (state.texts.size(1), self._width, state.following.size(1))
        options = {"wide": rows_bucket(self._width), "places": self._places, "reach": self._reach}
        options |= {"resumes": self._resumes, **launch_options(captured.device)}

        def turn(limits: Tensor) -> tuple[Tensor]:
            if draft is not None:
                tokens = draft(state.texts, state.lengths, state.block[:, :1])
                state.block[:, 1:] = tokens if rules.symbols is None else tokens.clamp(0, rules.symbols - 1)
            # a row that has ended, or waits, may reach up to T: nothing must be written behind it
            at = state.positions.clamp(max=sizes[0] - 1)
            features = captured.layered(state.block, at, shape).flatten(0, 1)
            found = captured.chosen(features, state.block, at.flatten(), limits, rules.pad, rules.eos, judges=False)
            advance[(shape.rows,)](tuple(state), found.contiguous(), limits, sizes, **options)
            return (state.going,)

        return turn

    def found(self, state: _State) -> list[Decoded | None]:
        """The sentences of a state whose rows have ended; None where scores are NaN."""
        return [self._sentence(RowState(*parts)) for parts in zip(*state, strict=True)]

    def _sentence(self, row: _State) -> Decoded | None:
        tokens, log_probs = (part[1 : row.lengths[0]].tolist() for part in (row.texts, row.log_probs))
        *counts, begins = row.history[:, : row.turns[0]].tolist()
        drafts = None
        if self._keep_drafts:
            pairs = zip(begins, counts[0], strict=True)
            drafts = [torch.from_numpy(row.following[first : first + many].copy()) for first, many in pairs]
        if any(map(math.isnan, log_probs)):
            return None
        return Decoded(tokens, log_probs, SentenceStats(*counts), drafts)


class _BeamLoop(_Loop):
    """A beam search of one batch with a step in each pass."""

    def __init__(self, captured: Captured, rules: SearchRules, options: BeamOptions) -> None:
        super().__init__(captured, rules, buffers.tree_width_bucket(options.size), options.size, options.max_len + 2)
        self._options = options

    def sizes(self, rows: int, capacity: int) -> _State:
        one, beam, ends = (rows, 1), (rows, self._width), (rows, self._options.size)
        past = (*beam, capacity)
        parts = [*[one] * 5, beam, beam, beam, past, (rows, capacity), past, past, past, ends, ends, ends]
        return BeamState._make(parts)

    def start(self, state: _State, first_tokens: np.ndarray) -> None:
        """Fill in a state of zeros before the first step."""
        state.counts[:] = state.going[:] = 1
        state.tokens[:] = first_tokens[:, None]

    def turn(self, state: _State, shape: Shape) -> Function:
        from fairseq_aggdec.engine.cuda.loops import take_step  # imports Triton

        size, many = self._options.size, self._options.entries
        sizes = (state.paths.size(2), self._width, many)
        options = {"beams": rows_bucket(self._width), "kept": rows_bucket(many), "best": rows_bucket(2 * size)}
        options |= {"size": size, **launch_options(self.captured.device)}

        def step(limits: Tensor) -> tuple[Tensor]:
            features = self.captured.layered(state.tokens, state.positions, shape, paths=state.paths).flatten(0, 1)
            entries = self._entries(features, state.positions.flatten(), limits)
            take_step[(shape.rows,)](tuple(state), tuple(entries), limits, sizes, **options)
            return (state.going,)

        return step

    def _entries(self, features: Tensor, at: Tensor, limits: Tensor) -> Any:
        """The best log-probabilities at each position and their tokens, twice N x `entries`."""
        captured, eos, count = self.captured, self._rules.eos, self._options.entries
        if captured.kernels is not None:
            return captured.kernels.best_entries(
                captured.parts.project(features), at, limits, count, captured.memory.temperature
            )
        scores = captured.likeliest(features, 1, self._rules.pad, eos, at < limits[2])[2][:]
        others = torch.arange(captured.parts.symbols, device=captured.device) != eos
        return scores.masked_fill((at >= limits[3])[:, None] & others, -math.inf).topk(count)

    def found(self, state: _State) -> list[tuple[list[Output], BeamStats] | None]:
        """The sentences of a state, all of which have ended; None where scores were NaN."""
        row, place, last = np.arange(len(state.going))[:, None], state.end_parents, state.end_steps
        texts, totals = (np.zeros((*place.shape, last.max()), kind) for kind in (np.int64, np.float64))
        for step in range(last.max() - 1, -1, -1):  # all hypotheses at once, from their ends to their beginnings
            texts[..., step], totals[..., step] = state.words[row, place, step], state.totals[row, place, step]
            place = np.where(step < last, state.parents[row, place, step], place)
        rows = (BeamState(*parts) for parts in zip(*state, strict=True))
        return [self._sentence(*own) for own in zip(rows, texts, totals, strict=True)]

    def _sentence(self, row: _State, texts: np.ndarray, totals: np.ndarray) -> tuple[list[Output], BeamStats] | None:
        ends = zip(texts, totals, row.end_steps.tolist(), row.end_sums.tolist(), strict=True)
        outputs = [
            output_of([*text[:length].tolist(), self._options.eos], [*sums[:length].tolist(), end], self._options, None)
            for text, sums, length, end in list(ends)[: row.finished[0]]
        ]
        widths = row.widths[: row.steps[0] + 1].tolist()
        stats = BeamStats(widths, list(widths), [1] * len(widths))
        return None if row.spoiled[0] else (best_first(outputs), stats)


def _decoded(loop: Any, first_tokens: Tensor) -> list[Any] | None:
    """What each sentence has come to; None where a pass is too large or fails, or scores are NaN."""
    found: list[Any] = [None] * len(first_tokens)
    try:
        _fill(found, loop, first_tokens.cpu().numpy())
    except AggdecError:
        raise
    except Exception as error:
        if not isinstance(error, torch.OutOfMemoryError):
            give_up(f"a loop on the device failed: {error}")
        logger.warning(f"a batch is decoded by a loop on the host, slower and as exact, because of {error!r}")
    return None if None in found else found


def _fill(found: list[Any], loop: Any, first_tokens: np.ndarray) -> None:
    """Fill in what each sentence has come to, as long as passes fit into graphs."""
    numbers, capacity, sizes = list(range(len(found))), loop.capacity, loop.sizes(len(found), 1)
    state = sizes._make(map(np.zeros, sizes))
    loop.start(state, first_tokens)
    while numbers and (shape := loop.shape(capacity)) is not None:
        sizes = loop.sizes(shape.rows, capacity)
        state = sizes._make(part.numpy() for part in _parts(loop.repeat(_wider(state, sizes), sizes, shape), sizes))
        going = state.going[: len(numbers), 0]
        ended, staying = np.flatnonzero(going == 0).tolist(), fewest_moves(np.flatnonzero(going).tolist())
        if ended:
            sentences = loop.found(state._make(part[ended] for part in state))
            for row, sentence in zip(ended, sentences, strict=True):
                found[numbers[row]] = sentence
            if staying:
                for memory in loop.memories:
                    memory.keep(Order(staying, loop.captured.device))
        numbers, state = [numbers[row] for row in staying], state._make(part[staying] for part in state)
        if _WAITS in state.going:
            capacity *= 2
            state.going[:] = 1


def _is_due(going: np.ndarray) -> bool:
    """Whether the host takes over: half of the rows have ended, or one needs more room."""
    return bool(np.count_nonzero(going) <= len(going) // 2 or _WAITS in going)


def _parts(whole: Tensor, sizes: _State) -> _State:
    """The parts of a state in one buffer of int64."""
    kinds = [torch.float64 if name in _FLOATS else torch.long for name in sizes._fields]
    found = zip(whole.split([*map(_places, sizes)]), sizes, kinds, strict=True)
    return sizes._make(part[: math.prod(size)].view(kind).view(size) for part, size, kind in found)


def _wider(state: _State, sizes: _State) -> Tensor:
    """A state in one buffer with more rows, which have ended, and a larger T."""
    whole = torch.zeros(sum(map(_places, sizes)), dtype=torch.long)
    parts = _parts(whole, sizes)
    for part, own in zip(parts, state, strict=True):
        numbers, rows, known = part.numpy(), len(own), own.shape[-1]
        numbers[:rows, ..., :known] = own  # a path goes on with slot 0, which is on every path
        numbers[rows:] = numbers[rows - 1]
    parts.going[len(state.going) :] = 0
    return whole


def _places(size: tuple[int, ...]) -> int:
    """The length of a part, even: kernels are compiled anew for addresses that are no multiples of 16."""
    return math.prod(size) + 1 & ~1
