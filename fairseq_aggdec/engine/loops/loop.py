"""What loops on the device have in common: turn follows turn on the device, and the host looks one turn late.

A turn is a pass and one kernel behind it, in one graph. The host launches turn after turn, until half of the rows have
ended or one needs more room. Then it reads the state, takes out what has ended, and goes on with another graph.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.outputs import fewest_moves
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import RowSelection
from fairseq_aggdec.engine.graphs.graph_cache import (
    Function,
    Graph,
    GraphCache,
    is_out_of_memory,
)
from fairseq_aggdec.engine.graphs.passes import LIMITS, Shape, limits_of
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.loops.state import (
    ENDED,
    GOES,
    WAITS,
    Part,
    State,
    new_buffer,
    parts_of,
    widened,
)
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)

failures: list[str] = []
"""why loops have failed in this process: after the first failure the host's loops decode"""


class DeviceDraft(NamedTuple):
    """A model's drafts as a part of a turn's graph."""

    key: Hashable
    """of what is built in"""
    tokens: Callable[[Tensor, Tensor, Tensor], Tensor]
    """from texts, R x T, their lengths and their last tokens, R x 1 each, to draft tokens, R x k"""


class Plan(NamedTuple):
    """What a turn consists of, beside the kernel."""

    shape: Shape
    """of the verifier's pass"""
    draft: DeviceDraft | None = None
    """before the pass; None: no model drafts"""


class Loop(ABC):
    """A loop over the graphs of a decoder, for one batch."""

    def __init__(
        self,
        runner: Graphs,
        rules: SearchRules,
        width: int,
        capacity: int,
        slots: int = 1,
    ) -> None:
        """For a decoder that is ready to score the batch from position 0.

        Args:
            runner: of the decoder's passes.
            rules: those that `Graphs.allows`.
            width: W, the tokens of a row in a pass.
            capacity: T, the positions for which a state has room at first.
            slots: of the cache, for each position.
        """
        self.runner = runner
        self.rules = rules
        self.width = width
        self.capacity = capacity
        self.slots = slots
        self.memories: list[Any] = [runner.memory]
        """what keeps the rows that are left"""
        self.key: Hashable = None
        """of what a turn has built in beside sizes, rules and a draft"""

    @staticmethod
    @abstractmethod
    def serves(search: Any) -> bool:
        """Whether such a search can be done on the device."""

    @abstractmethod
    def table(self, rows: int, capacity: int) -> list[Part]:
        """The parts of a state."""

    @abstractmethod
    def start(self, state: State, first_tokens: np.ndarray) -> None:
        """Fill in a state of zeros, with room for one position, before the first turn."""

    @abstractmethod
    def turn(self, state: State, plan: Plan) -> Function:
        """The function of a turn's graph, which changes the state on the device and returns `going`."""

    @abstractmethod
    def sentence(self, row: State) -> Any | None:
        """The record of a sentence that has ended, from its row of a state on the host; None where scores are NaN."""

    def found(self, state: State) -> list[Any | None]:
        """The records of all sentences of a state on the host."""
        return [self.sentence(state.of(row)) for row in range(len(state.going))]

    def plan(self, capacity: int) -> Plan | None:
        """A turn of the rows that are left; None: it is too large for a graph."""
        shape = self.runner.fit(self.width, capacity * self.slots)
        if shape is None or not self.runner.allows(self.rules, shape, 0):
            return None
        return Plan(shape)

    def take_turns(self, state: State, plan: Plan, capacity: int) -> State:
        """Take turns from a state on the host on, see `repeat`; return the state then, on the host."""
        table = self.table(plan.shape.rows, capacity)
        before = widened(state, table)

        def make() -> tuple[Function, list[Tensor]]:
            buffer = torch.zeros_like(before, device=self.runner.passes.device)
            return self.turn(parts_of(buffer, table), plan), [buffer]

        # what is built into the graph
        rules = self.rules
        of_draft = plan.draft and plan.draft.key
        built_in = (self.runner.chooser(rules), self.slots, self.key, of_draft)
        key = (type(self).__name__, plan.shape, len(before), *built_in)
        graph = self.runner.cache.get(key, LIMITS, make)

        # turns, and the state behind them
        graph.host_inputs()[:] = limits_of(rules)
        graph.inputs[0].copy_(before)
        repeat(self.runner.cache, graph, capacity)
        return parts_of(graph.inputs[0].cpu(), table).on_host()


def repeat(graphs: GraphCache, graph: Graph, most: int) -> None:
    """Launch turns until half of the rows have ended, or one needs more room.

    Each is launched before the result of the last one is there. A turn commits a token in every row, so that there are
    at most `most`. A graph may be called more often, before it is captured.
    """
    graphs.run(graph)
    for _ in range(most + 1):
        graphs.run(graph)
        going = graph.previous_result()
        if np.count_nonzero(going) <= len(going) // 2 or WAITS in going:
            return
    raise RuntimeError(f"a loop on the device has not ended after {most} turns")


def decode(loop: Loop, first_tokens: Tensor) -> list[Any] | None:
    """What each sentence has come to; None where the host's loop decodes the batch, from its beginning.

    That is where a pass is too large or fails, and where scores are NaN.
    """
    try:
        found = _decoded(loop, first_tokens.cpu().numpy())
    except AggdecError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            failures.append(str(error))
        logger.warning(
            f"a batch is decoded by a loop on the host, slower and as exact, because of {error!r}"
        )
        return None
    return None if None in found else found


def _decoded(loop: Loop, first_tokens: np.ndarray) -> list[Any | None]:
    """What each sentence has come to; None where it is not known, since a pass is too large, or scores are NaN."""
    found: list[Any | None] = [None] * len(first_tokens)
    left = list(range(len(found)))  # places of the active sentences in the batch
    capacity = loop.capacity
    table = loop.table(len(found), 1)
    state = parts_of(new_buffer(table), table).on_host()
    loop.start(state, first_tokens)
    while left:
        plan = loop.plan(capacity)
        if plan is None:
            break
        state = loop.take_turns(state, plan, capacity)

        # sentences that have ended leave
        going = state.going[: len(left), 0]
        ended = np.flatnonzero(going == ENDED).tolist()
        staying = fewest_moves(np.flatnonzero(going).tolist())
        for row, sentence in zip(ended, loop.found(state.of(ended)), strict=True):
            found[left[row]] = sentence
        if ended and staying:
            order = RowSelection(staying, loop.runner.passes.device)
            for memory in loop.memories:
                memory.keep(order)
        left = [left[row] for row in staying]
        state = state.of(staying)

        # others wait for more room
        if WAITS in state.going:
            capacity *= 2
            state.going[:] = GOES
    return found
