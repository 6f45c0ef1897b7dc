"""Runs a decoder's passes as CUDA graphs.

The host keeps the texts, the device the values, and the host waits once a pass. Sizes are rounded up to a few, so that
few graphs serve all passes; the rows and columns that fill a pass up change nothing that is read.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Ragged
from fairseq_aggdec.engine.graphs.buffers import (
    MOST_TOKENS,
    positions_bucket,
    tree_width_bucket,
    width_bucket,
)
from fairseq_aggdec.engine.graphs.graph_cache import Function, Graph, GraphCache
from fairseq_aggdec.engine.graphs.memory import StaticMemory
from fairseq_aggdec.engine.graphs.passes import (
    LIMITS,
    Chooser,
    Passes,
    Shape,
    block_pass,
    draft_pass,
    heads_pass,
    limits_of,
    tree_pass,
)
from fairseq_aggdec.engine.memory import LastFeatures
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.runner import (
    ChooseDraft,
    ChooseProposals,
    DraftBlock,
    Eager,
    Runner,
)

_MOST_SCORES = 2**27
"""N x V above which the scores of a pass are not computed in a graph: they stay in its memory"""


class Graphs(Runner):
    """The graphs of a decoder's passes; `eager` runs those of sizes or with rules that no graph has."""

    def __init__(self, parts: Parts) -> None:
        """Raises `ValueError` where kernels do not support the decoder."""
        self._parts = parts
        self._waits = parts.backend.sync_is_costly
        # kernels compute passes of any size
        self._is_exact = parts.backend.arithmetic.bit_exact
        self.cache = GraphCache.on(parts.device, parts.backend.drop_kernels)
        self.memory = StaticMemory(parts, self.cache)
        self.passes = Passes(parts, self.memory.cache)
        self.eager = Eager(parts, self.memory)

    def block(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        shape = self._shape_of(block.ragged.width, block.last_start)
        prefix = rules.common_prefix if block.last_start == 0 else []
        # the block begins with these tokens after the first
        forced = len(prefix[0]) if prefix else 0
        if shape is None or not self.allows(rules, shape, block.first_start + forced):
            return self.eager.choose(self.read(block), block, rules, ranks, sequence)

        graph = self._run(block, shape, rules, judges=ranks > 0 or forced > 0)
        return _choices(graph, block, shape, ranks > 0, forced)

    def tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        last = block.last_position
        shape = self.fit(
            tree_width_bucket(block.ragged.width), positions_bucket(block.end)
        )
        must_end = last >= rules.max_len  # only kernels know of it
        if (
            shape is None
            or not self.allows(rules, shape, block.first_position)
            or (must_end and self.passes.kernels is None)
        ):
            return self.eager.tree(block, rules, count, sequences)

        length = positions_bucket(last + 1)
        chooser = self.chooser(rules)
        key = ("tree", shape, length, count, chooser)
        columns = shape.width * (2 + length)
        graph, table = self._graph(
            key,
            shape.rows,
            columns,
            lambda: (tree_pass(self.passes, shape, count, chooser), []),
            rules,
        )
        _write_prefixes(table.reshape(shape.rows, shape.width, -1), block)
        self.cache.run(graph)
        return iter([_entries(graph, block, shape, count)])

    def read(self, block: Block) -> Tensor:
        shape = self._shape_of(block.ragged.width, block.last_start)
        if shape is None:
            return self.eager.read(block)
        features = self._run(block, shape).results[0]
        return block.ragged.pack(features[: len(block.lasts), : block.ragged.width])

    def draft(self, block: DraftBlock, choose: ChooseDraft) -> Tensor:
        shape = self._shape_of(block.width, block.last_start)
        if shape is None:
            return self.eager.draft(block, choose)
        size = block.block_size
        key = ("draft", shape, size)
        columns = 2 + 2 * shape.width + size
        graph, table = self._graph(
            key,
            shape.rows,
            columns,
            lambda: (draft_pass(self.passes, shape, size, choose), []),
        )
        given = block.split(block.table.numpy(), block.width, size)
        for part, values in zip(
            block.split(table, shape.width, size), given, strict=True
        ):
            part[: values.shape[0], : values.shape[1]] = values
        self.cache.run(graph)
        return graph.results[0][: block.table.size(0)]

    def propose(
        self, columns: np.ndarray, choose: ChooseProposals, last_head: int
    ) -> Tensor:
        features = self.memory.features
        assert features is not None
        if not features.are_static:
            return self.eager.propose(columns, choose, last_head)
        values = features.values
        key = ("heads", values.data_ptr(), *values.shape, last_head)
        graph, table = self._graph(
            key,
            values.size(0),
            1,
            lambda: (heads_pass(self.passes, features.values, choose), []),
        )
        table[: len(columns), 0] = columns
        self.cache.run(graph)
        return graph.results[0][: len(columns)]

    def fit(self, width: int, keys: int) -> Shape | None:
        """The sizes of a pass with as many rows and sources as the batch; None: it is too large for a graph.

        The cache then has room for its `keys` positions.
        """
        cache = self.memory.cache
        shape = Shape(cache.rows, width, keys, cache.source)
        if shape.tokens > MOST_TOKENS and not self._is_exact:
            return None
        cache.reserve(keys)
        return shape

    def allows(self, rules: SearchRules, shape: Shape, first_position: int) -> bool:
        """Whether a graph can choose the tokens: it has bans of padding and of an early EOS, and the longest output."""
        if not rules.are_simple:
            return False
        # another choice has other bits, so no block may decide which one it gets
        if self._is_exact:
            return rules.prefix is None
        return (
            first_position >= rules.forced_steps
            and shape.tokens * self._parts.symbols <= _MOST_SCORES
        )

    def chooser(self, rules: SearchRules) -> Chooser:
        """What a graph of this batch has built in."""
        return Chooser(rules.pad, rules.eos, self.memory.temperature)

    def _shape_of(self, width: int, last_start: int) -> Shape | None:
        """`fit` for a block."""
        width = width_bucket(width)
        return self.fit(width, positions_bucket(last_start + width))

    def _run(
        self,
        block: Block,
        shape: Shape,
        rules: SearchRules | None = None,
        judges: bool = False,
    ) -> Graph:
        """Run a pass over a block, asynchronously. `rules`: it chooses tokens; `judges`: it scores the draft tokens."""
        rows = len(block.lasts)
        drafted = block.ragged.width - 1
        is_on_host = not self._waits or block.draft.device != self._parts.device
        keeps = self.memory.keeps_features
        chooser = None if rules is None else self.chooser(rules)
        key = ("block", shape, is_on_host, judges, chooser, keeps)

        graph, table = self._graph(
            key,
            shape.rows,
            1 + shape.width,
            lambda: block_pass(self.passes, shape, chooser, judges, keeps, is_on_host),
            rules,
        )
        table[:rows, 0] = block.known_starts
        table[:rows, 1] = block.lasts
        if drafted and is_on_host:
            table[:rows, 2 : 2 + drafted] = block.draft[:, :drafted].numpy()
        elif drafted:
            graph.inputs[0][:rows, :drafted] = block.draft[:, :drafted]
        self.cache.run(graph)
        if keeps:
            self.memory.features = LastFeatures(
                graph.results[0], list(block.known_starts), are_static=True
            )
        return graph

    def _graph(
        self,
        key: tuple[Any, ...],
        rows: int,
        columns: int,
        make: Callable[[], tuple[Function, Sequence[Tensor]]],
        rules: SearchRules | None = None,
    ) -> tuple[Graph, np.ndarray]:
        """The graph of a key with the limits of rules, and the table of its input, R x `columns`.

        Rows of zeros read symbol 0 at position 0, so that the table may have more rows than the batch.
        """
        graph = self.cache.get(key, LIMITS + rows * columns, make)
        inputs = graph.host_inputs()
        inputs[:] = 0
        if rules is not None:
            inputs[:LIMITS] = limits_of(rules)
        return graph, inputs[LIMITS:].reshape(rows, columns)


def _choices(
    graph: Graph, block: Block, shape: Shape, judges: bool, forced: int
) -> Chosen:
    """The choices of a pass over a block with `forced` tokens after the first.

    `judges`: with what is found of draft tokens.
    """
    # where the host has not seen the block's tokens, they come before what `Passes.chosen` returns
    found = graph.read().reshape(-1, shape.rows, shape.width)
    if graph.inputs:
        read, tokens, log_probs, *judged = found
    else:
        read = graph.host_inputs()[LIMITS:].reshape(shape.rows, -1)[:, 1:]
        tokens, log_probs, *judged = found

    # a forced beginning is chosen whatever the scores are; no draft token passes where the output must end
    if forced:
        tokens[:, :forced] = read[:, 1 : 1 + forced]
        log_probs[:, :forced] = judged[1][:, :forced]
    scores = [log_probs]
    if judges:
        must_end, drafted, higher = judged
        drafted[must_end > 0] = -np.inf
        scores += [drafted, higher]

    # copies, since the next pass overwrites what it reads and finds; by numpy, whose operations take less time
    inside = _inside(block.ragged, shape)
    whole = [
        torch.from_numpy(part[inside].astype(np.int64).ravel())
        for part in (read, tokens)
    ]
    whole += [torch.from_numpy(part[inside].flatten()) for part in scores]
    return Chosen(*whole)


def _write_prefixes(table: np.ndarray, block: TreeBlock) -> None:
    """Write token, position and path of each prefix, R x W x (2 + L); what is left of a path repeats its last slot."""
    rows = table[: len(block.ragged.widths)]
    end = 2 + block.paths.size(1)
    filling = _filling(block.ragged, table.shape[1])
    rows[..., 0] = block.tokens.numpy()[filling].reshape(rows.shape[:2])
    rows[..., 1] = block.positions.numpy()[filling].reshape(rows.shape[:2])
    rows[..., 2:end] = block.paths.numpy()[filling].reshape(*rows.shape[:2], -1)
    rows[..., end:] = rows[..., end - 1, None]


def _entries(graph: Graph, block: TreeBlock, shape: Shape, count: int) -> Entries:
    """The best entries of a pass over trees, copied, since the next pass overwrites them."""
    inside = _inside(block.ragged, shape)
    found = graph.read().reshape(2, shape.rows, shape.width, count)
    values, names = (part[inside].reshape(-1, count) for part in found)
    whole = None
    if graph.results:
        places = np.arange(shape.tokens).reshape(shape.rows, -1)[inside].ravel()
        whole = graph.results[0][torch.from_numpy(places)]
    return Entries(
        torch.from_numpy(values.copy()),
        torch.from_numpy(names.astype(np.int64)),
        whole,
    )


def _inside(ragged: Ragged, shape: Shape) -> Any:
    """The index of a pass's valid entries, of R x W."""
    rows = len(ragged.widths)
    if ragged.is_full:
        return slice(rows), slice(ragged.width)
    return (
        np.arange(shape.width)
        < np.array([*ragged.widths, *[0] * (shape.rows - rows)])[:, None]
    )


def _filling(ragged: Ragged, width: int) -> Any:
    """For B x `width` places the index of the entry that is put there: the last one fills up a row."""
    if ragged.is_full and ragged.width == width:
        return slice(None)
    widths = np.array(ragged.widths)[:, None]
    ends = widths.cumsum(axis=0)
    return np.minimum(ends - widths + np.arange(width), ends - 1).ravel()
