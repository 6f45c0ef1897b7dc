"""Drafting by models in CUDA graphs. Drafts stay on the device, where the verifier reads them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Block, Order
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.graphs.decoder import GraphDecoder, Shape
from fairseq_aggdec.engine.graphs.graphs import Function
from fairseq_aggdec.engine.plain.layers import keep_rows
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder
from fairseq_aggdec.models.nar_drafter import NarDrafterDecoder


class GraphDraftDecoder(DraftDecoder):
    """A `DraftDecoder` whose draft is one graph. The next draft overwrites a draft."""

    _engine: GraphDecoder

    def __init__(
        self, decoder: NarDrafterDecoder, arithmetic: Arithmetic = AS_THE_MODEL, kernels: bool = False
    ) -> None:
        """`kernels`: see `GraphDecoder`."""
        self._by_kernels = kernels
        super().__init__(decoder, arithmetic)

    def _new_engine(self, arithmetic: Arithmetic, mask: Tensor | None) -> BlockDecoder:
        return GraphDecoder(self._decoder, (NarDrafterDecoder,), arithmetic, mask, self._by_kernels)

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        self._begin()
        engine, width = self._engine, self._width(texts, block_size)
        shape = engine.shape_of(width, max(self._read)) if engine.reads_extra_embeddings else None
        if shape is None:
            return super().draft(texts, block_size)
        numbers_of_row = 2 + 2 * shape.width + block_size
        key = ("draft", shape, block_size)
        graph = engine.graphs.get(key, shape.rows * numbers_of_row, lambda: (self._draft_pass(shape, block_size), ()))
        numbers = graph.numbers().reshape(shape.rows, numbers_of_row)
        numbers[: len(texts)], numbers[len(texts) :] = self._numbers(texts, block_size, shape.width).numpy(), 0
        engine.graphs.run(graph)
        self._have_read(texts)
        return graph.results[0][: len(texts)]

    def _draft_pass(self, shape: Shape, block_size: int) -> Function:
        sizes = [1, 1, shape.width, shape.width, block_size]
        columns = torch.arange(shape.width, device=self._engine.device)

        def draft(numbers: Tensor) -> tuple[Tensor, ...]:
            last, starts, block, reach, wanted = numbers.view(shape.rows, -1).split_with_sizes(sizes, dim=1)
            positions = starts + columns
            features = self._engine.layered(block, positions, shape, reach=reach, wanted=wanted)
            return numbers[:0], self._choose(features, last[:, 0])

        return draft


class GraphProposingDecoder(ProposingDecoder, GraphDecoder):
    """A `ProposingDecoder` whose proposals are one graph. The next proposals overwrite them."""

    def __init__(self, decoder: BlockwiseDecoder, arithmetic: Arithmetic = AS_THE_MODEL, kernels: bool = False) -> None:
        """`kernels`: see `GraphDecoder`."""
        super().__init__(decoder, arithmetic, kernels=kernels)
        self._keeps_features = True
        self._states: Tensor | None = None  # R x W x D of the last pass, if that was a graph's
        self._known_starts: list[int] = []  # its first position in each row

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        super().start(encoder_out, temperature)
        self._states = None

    def features(self, block: Tensor | None, starts: Tensor, last_start: int, **options: Any) -> Tensor:
        self._states = None
        return super().features(block, starts, last_start, **options)

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        states = self._states
        if states is None:
            return super().propose(lengths, last_head)
        key = ("heads", states.data_ptr(), *states.shape, last_head)
        graph = self.graphs.get(key, states.size(0), lambda: (self._heads_pass(states, last_head), ()))
        numbers = graph.numbers()
        numbers.fill(0)
        numbers[: len(lengths)] = np.subtract(lengths, self._known_starts) - 2
        self.graphs.run(graph)
        return graph.results[0][: len(lengths)]

    def keep(self, order: Order) -> None:
        super().keep(order)
        if self._states is not None:
            keep_rows(self._states, order)
            self._known_starts = [self._known_starts[row] for row in order.rows]

    def _take(self, block: Block, features: Tensor) -> None:
        self._states, self._features, self._known_starts = features, None, list(block.known_starts)

    def _heads_pass(self, states: Tensor, last_head: int) -> Function:
        rows, heads = torch.arange(states.size(0), device=self.device), self._heads_up_to(last_head)

        def propose(columns: Tensor) -> tuple[Tensor, ...]:
            return columns[:0], self._best(heads, states[rows, columns], last_head)

        return propose
