"""Greedy search on the device, without drafts, with copies of the source, or with drafts by a model.

One kernel behind each pass commits tokens and writes the next block (`kernels.advance`); a model drafts in the same
graph. `decoding.loop.draft_verify_accept`, on the host, is the definition: the records are its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.input_guided import FOREIGN, SourceCopyDrafter
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.decoding.verification import Acceptance
from fairseq_aggdec.engine.cuda.launching import launch_options
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.graphs import buffers
from fairseq_aggdec.engine.graphs.graph_cache import Function
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.loops.loop import DeviceDraft, Loop, Plan
from fairseq_aggdec.engine.loops.state import GOES, Part, State

MOST_COPIED = 15
"""tokens of a copy: with the token before it, a row is one tile of the kernels, and three rows have no more than 48"""
MOST_DRAFTED = 23
"""tokens of a model's draft: with the 24 that a turn can commit, its pass reads 47, and kernels compute up to 48"""


class RowSearch(NamedTuple):
    """What `draft_verify_accept` is told about a search of one output a sentence."""

    drafter: Drafter
    accept: Acceptance
    schedule: DraftSchedule
    keep_drafts: bool


class RowLoop(Loop):
    """Greedy search of one batch: each row commits what its block has brought."""

    def __init__(self, runner: Graphs, rules: SearchRules, search: RowSearch) -> None:
        drafter = search.drafter
        self._model: Any = None
        """a `DraftDecoder`; None: no model drafts"""
        self._reach = 0
        """the number of positions that the model knows"""
        self._matchers = (
            drafter.matchers if isinstance(drafter, SourceCopyDrafter) else []
        )
        self._source = 0
        """S, the places of a source, a power of two; 0: nothing is copied"""

        # W, the last token and the longest draft
        width = 1
        if self._matchers:
            longest = max(max(matcher.copyable) for matcher in self._matchers)
            width = buffers.width_bucket(1 + min(rules.max_len, longest, MOST_COPIED))
            self._source = buffers.source_bucket(
                max(len(matcher.source) for matcher in self._matchers)
            )
        if isinstance(drafter, BlockDrafter):
            self._model = drafter.model
            self._reach = drafter.model.max_positions
            width = 1 + min(drafter.block_size, MOST_DRAFTED)

        most = min(rules.max_len + 1 + width, 2 * runner.memory.cache.source + width)
        super().__init__(runner, rules, width, buffers.positions_bucket(most))
        self._resumes = any(matcher.resumes for matcher in self._matchers)
        self.key = (self._resumes, rules.symbols)
        if self._model is not None:
            self.memories.append(self._model)

    @staticmethod
    def serves(search: RowSearch) -> bool:
        drafter, accept, schedule, keep_drafts = search
        if not accept.is_exact or schedule is not VERIFY_ALL or keep_drafts:
            return False
        if type(drafter) is BlockDrafter:
            return isinstance(getattr(drafter.model, "runner", None), Graphs)
        return type(drafter) in (NoDrafter, SourceCopyDrafter)

    def table(self, rows: int, capacity: int) -> list[Part]:
        one = (rows, 1)
        block = (rows, self.width)
        source = (rows, self._source)
        text = (rows, capacity)
        return [
            # of the text: its length, the start symbol counted; `GOES` and others of `state`
            Part("lengths", one),
            Part("going", one),
            # of the block: the length of its draft, of a model's the limit; the first place of a copy
            Part("drafted", one),
            Part("copied", one),
            # the number of turns taken; whether a copy is a guess; the number of tokens that the next guess leaves out
            Part("turns", one),
            Part("guessed", one),
            Part("left_out", one),
            # the last token and its draft, and their positions
            Part("block", block),
            Part("positions", block),
            # the token before each place of a source, -2 before the first and behind the last
            Part("contexts", source),
            # `SourceMatcher.source` and `copyable`
            Part("following", source),
            Part("copyable", source),
            # the output by position, the first position 1
            Part("texts", text),
            Part("log_probs", text, torch.float64),
            # of each turn the number of drafted, of accepted and of committed tokens
            Part("history", (rows, 3, capacity)),
        ]

    def plan(self, capacity: int) -> Plan | None:
        plan = super().plan(capacity)
        if plan is None or self._model is None:
            return plan
        draft = draft_on_device(self._model, capacity, self.width - 1)
        return None if draft is None else plan._replace(draft=draft)

    def start(self, state: State, first_tokens: np.ndarray) -> None:
        rules = self.rules
        state.lengths[:] = 1
        state.going[:] = GOES
        state.left_out[:] = 1
        state.block[:, 0] = first_tokens
        state.positions[:] = np.arange(self.width)
        state.contexts[:] = -2
        last_symbol = math.inf if rules.symbols is None else rules.symbols - 1
        for row, matcher in enumerate(self._matchers):
            length = len(matcher.source)
            count = min(matcher.copyable[0], rules.max_len, self.width - 1)
            known = np.clip(matcher.source, 0, last_symbol)  # see `Outputs`
            before = np.array(matcher.source[:-1])
            state.contexts[row, 1:length] = np.where(
                before == rules.eos, FOREIGN, before
            )
            state.copyable[row, :length] = matcher.copyable[:-1]
            state.following[row, :length] = known
            state.block[row, 1 : 1 + count] = known[:count]
            state.drafted[row] = count
        if self._model is not None:
            self._model.begin()
            state.texts[:, 0] = first_tokens
            state.drafted[:] = min(self.width - 1, rules.max_len, self._reach - 1)

    def turn(self, state: State, plan: Plan) -> Function:
        from fairseq_aggdec.engine.loops.kernels import advance  # imports Triton

        passes = self.runner.passes
        rules = self.rules
        chooser = self.runner.chooser(rules)
        parts = tuple(vars(state).values())
        capacity = state.texts.size(1)
        sizes = (capacity, self.width, self._source)
        options = {
            "padded_width": buffers.rows_bucket(self.width),
            "padded_source": self._source,
            "resumes": self._resumes,
            "reach": self._reach,
            **launch_options(passes.device),
        }

        def turn(limits: Tensor) -> tuple[Tensor]:
            if plan.draft is not None:
                tokens = plan.draft.tokens(
                    state.texts, state.lengths, state.block[:, :1]
                )
                if rules.symbols is not None:
                    tokens = tokens.clamp(0, rules.symbols - 1)
                state.block[:, 1:] = tokens
            # a row that has ended, or waits, may reach up to T: nothing must be written behind it
            at = state.positions.clamp(max=capacity - 1)
            features = passes.features(state.block, at, plan.shape).flatten(0, 1)
            found = passes.chosen(
                features, state.block, at.flatten(), limits, chooser, judges=False
            )
            advance[(plan.shape.rows,)](
                parts, found.contiguous(), limits, sizes, **options
            )
            return (state.going,)

        return turn

    def sentence(self, row: State) -> Decoded | None:
        inside = slice(1, row.lengths[0])
        log_probs = row.log_probs[inside].tolist()
        if any(map(math.isnan, log_probs)):
            return None
        counts = row.history[:, : row.turns[0]].tolist()
        tokens = row.texts[inside].tolist()
        return Decoded(tokens, log_probs, SentenceStats(*counts))


def draft_on_device(
    model: DraftDecoder, capacity: int, block_size: int
) -> DeviceDraft | None:
    """Drafts of k = `block_size` tokens for texts of up to T = `capacity` tokens; None: too large for a graph.

    A text that has not ended leaves room for a draft and the token behind it. The last k + 1 tokens are read, since an
    iteration commits no more; all where the prefix is bidirectional.
    """
    runner = model.runner
    assert isinstance(runner, Graphs)
    width = min(2 * block_size + 1, capacity) if model.is_causal else capacity
    shape = runner.fit(width, buffers.positions_bucket(capacity))
    if shape is None:
        return None
    # not the model, which has the graph of which this is a part
    passes = runner.passes
    choose = model.choose_tokens
    is_causal = model.is_causal
    mask = model.mask
    simulated = getattr(model, "drafts_on_device", None)  # of a benchmark
    columns = torch.arange(width, device=passes.device)

    def tokens(texts: Tensor, lengths: Tensor, last: Tensor) -> Tensor:
        # known tokens, then masks; other texts may reach up to T: nothing must be written behind it
        starts = (lengths - (width - block_size)).clamp(min=0)
        positions = (starts + columns).clamp(max=capacity - 1)
        is_known = positions < lengths
        block = texts.gather(1, positions).masked_fill(~is_known, mask)

        # a known token attends to what is before it, a mask to all masks
        end = lengths + (block_size - 1)
        reach = (
            torch.where(is_known, positions, end)
            if is_causal
            else end.expand_as(positions)
        )
        wanted = lengths - starts + columns[:block_size]
        features = passes.features(block, positions, shape, reach=reach, wanted=wanted)
        drafts = choose(features, last[:, 0])
        return drafts if simulated is None else simulated(lengths, block_size)

    return DeviceDraft((shape, block_size, runner.cache.version, id(model)), tokens)
