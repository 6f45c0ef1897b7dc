"""The memory of a batch in static buffers; graphs fill it and move its rows."""

from collections.abc import Sequence
from typing import Any
from weakref import proxy

import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.engine.graphs.buffers import MOST_TOKENS, STATIC, StaticCache, rows_bucket
from fairseq_aggdec.engine.graphs.graphs import Function, Graphs
from fairseq_aggdec.engine.parts import Parts


class StaticMemory:
    """As `memory.Memory`, for passes that are captured."""

    def __init__(self, parts: Parts, graphs: Graphs) -> None:
        self._parts, self._graphs = parts, graphs
        memory = proxy(self)  # as `Captured.weak`
        self.cache = StaticCache(*parts.sizes, lambda capacity: memory._moved(capacity))
        self.cross = torch.empty(0)
        self.padding: Tensor | None = None
        self.temperature = 1.0

    def start(self, encoder_out: dict[str, Any]) -> None:
        states, masks = encoder_out["encoder_out"][0].detach(), encoder_out["encoder_padding_mask"]
        length, batch_size, _ = states.shape
        cache, parts = self.cache, self._parts
        cache.start_with(batch_size, length, states)
        rows, source = cache.rows, cache.source

        held = encoder_out.get(STATIC, [])[::2]

        def make() -> tuple[Function, Sequence[Tensor]]:
            memory, hidden = held or (
                torch.zeros(rows, source, states.size(2), dtype=states.dtype, device=states.device),
                torch.zeros(rows, source, dtype=torch.bool, device=states.device),
            )

            def fill(numbers: Tensor) -> tuple[Tensor, ...]:
                cache.fill(parts.keys_and_values(memory), hidden)
                return (numbers,)

            return fill, (memory, hidden)

        graph = None
        if held or rows * source <= MOST_TOKENS:
            key = ("start", rows, source, *(part.data_ptr() for part in held))
            graph = self._graphs.get(key, 0, make)
        fill, (memory, hidden) = make() if graph is None else (lambda _: self._graphs.run(graph), graph.inputs)
        if not held:
            # zeros in place of an earlier batch's states: zero times NaN is NaN
            memory.zero_()[:batch_size, :length] = states.transpose(0, 1)
            hidden.zero_()[:batch_size, length:] = True
            if masks:
                hidden[:batch_size, :length] = masks[0]
        fill(hidden[:0])
        self.cross, self.padding = cache.sources(batch_size)

    def keep(self, order: Order) -> None:
        places, rows = order.moves
        if places:
            assert set(places).isdisjoint(rows), "a pass must change nothing when it is repeated"
            count = rows_bucket(len(places))
            key = ("keep", count, self.cache.source)
            graph = self._graphs.get(key, 2 * count, lambda: (self.cache.move, ()))
            numbers = graph.numbers().reshape(2, count)
            numbers[:, : len(places)], numbers[:, len(places) :] = (places, rows), [places[:1], rows[:1]]
            self._graphs.run(graph)
        self.cache.shrink(len(order.rows))
        self.cross, self.padding = self.cache.sources(len(order.rows))

    def _moved(self, capacity: int) -> None:
        if self._parts.positions is not None:
            self._parts.positions.reaching(capacity)  # now, since a table that grows moves
        self._graphs.clear()
