"""The memory of a batch in static buffers; graphs fill it and move its rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import proxy

import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import RowSelection
from fairseq_aggdec.engine.graphs.buffers import (
    MOST_TOKENS,
    STATIC,
    StaticCache,
    rows_bucket,
)
from fairseq_aggdec.engine.graphs.graph_cache import Function, GraphCache
from fairseq_aggdec.engine.memory import Memory
from fairseq_aggdec.engine.parts import Parts


class StaticMemory(Memory):
    """As `Memory`, for passes that are captured."""

    cache: StaticCache

    def __init__(self, parts: Parts, graphs: GraphCache) -> None:
        # passes hold the memory: they would keep their graphs until Python's collector runs
        graphs = proxy(graphs)

        def moved(capacity: int) -> None:
            if parts.positions is not None:
                # now, since a table that grows moves
                parts.positions.reaching(capacity)
            graphs.clear()

        super().__init__(parts, StaticCache(*parts.sizes, moved))
        self._graphs = graphs

    def _start(
        self, states: Tensor, hidden: Tensor | None, encoder_out: dict[str, Any]
    ) -> None:
        length, batch_size, dim = states.shape
        cache = self.cache
        cache.start_with(batch_size, length, states)
        rows = cache.rows
        source = cache.source
        parts = self._parts
        # where an encoder's graph leaves states and padding
        of_encoder = encoder_out.get(STATIC, [])

        def make() -> tuple[Function, Sequence[Tensor]]:
            inputs = of_encoder or (
                states.new_zeros(rows, source, dim),
                states.new_zeros(rows, source, dtype=torch.bool),
            )

            def fill(unread: Tensor) -> tuple[Tensor, ...]:
                cache.fill(parts.keys_and_values(inputs[0]), inputs[1])
                return (unread,)

            return fill, inputs

        # a graph where it fits, else the same operations as they are
        run: Callable[[], object]
        if of_encoder or rows * source <= MOST_TOKENS:
            key = ("start", rows, source, *(part.data_ptr() for part in of_encoder))
            graph = self._graphs.get(key, 0, make)
            inputs = graph.inputs
            run = partial(self._graphs.run, graph)
        else:
            fill, inputs = make()
            run = partial(fill, inputs[1][:0])
        if not of_encoder:
            # zeros in place of an earlier batch's states: zero times NaN is NaN
            inputs[0].zero_()[:batch_size, :length] = states.transpose(0, 1)
            inputs[1].zero_()[:batch_size, length:] = True
            if hidden is not None:
                inputs[1][:batch_size, :length] = hidden
        run()
        self.cross, self.padding = cache.sources(batch_size)

    def _keep(self, order: RowSelection) -> None:
        places, rows = order.moves
        if places:
            assert set(places).isdisjoint(rows), (
                "a pass must change nothing when it is repeated"
            )
            count = rows_bucket(len(places))
            key = ("keep", count, self.cache.source)
            graph = self._graphs.get(key, 2 * count, lambda: (self.cache.move, ()))
            inputs = graph.host_inputs().reshape(2, count)
            inputs[:, : len(places)] = (places, rows)
            inputs[:, len(places) :] = [places[:1], rows[:1]]
            self._graphs.run(graph)
        self.cache.shrink(len(order.rows))
        self.cross, self.padding = self.cache.sources(len(order.rows))
