"""Runs an encoder's passes as CUDA graphs, for batches filled up with padding to a few sizes."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairseq_aggdec.engine.graphs.buffers import MOST_TOKENS, rows_bucket, source_bucket
from fairseq_aggdec.engine.graphs.graph_cache import Function, GraphCache


class Encoded(NamedTuple):
    """What is found in a batch of tokens, B x S."""

    states: Tensor
    """B x S x C, undefined at padding"""
    embedding: Tensor
    """B x S x C"""
    hidden: Tensor
    """B x S, the padding"""
    static: list[Tensor]
    """the same three in buffers that stay where they are, R x S' x C and R x S'; empty where there are none"""


class EncoderGraphs:
    """The graphs of an encoder."""

    def __init__(self, eager: Any) -> None:
        """`eager`: an `encoder.EagerEncoder`, which encodes a batch that is too large for a graph."""
        self._eager = eager
        self._graphs = GraphCache.on(eager.device, eager.backend.drop_kernels)
        # other sizes have other bits
        self._is_exact = eager.backend.arithmetic.same_bits

    def __call__(self, tokens: Tensor) -> Encoded:
        """As `EagerEncoder`; the next batch overwrites the result."""
        eager = self._eager
        rows = rows_bucket(tokens.size(0))
        source = source_bucket(tokens.size(1))
        if rows * source > MOST_TOKENS and not self._is_exact:
            return eager(tokens)
        # sinusoidal positions that grow move
        table = (
            None
            if eager.positions is None
            else eager.positions.reaching(source).data_ptr()
        )
        key = ("encoder", rows, source, table)
        graph = self._graphs.get(key, 0, lambda: self._pass(rows, source))
        inside = (
            slice(tokens.size(0)),
            slice(tokens.size(1)),
        )
        graph.inputs[0].fill_(eager.pad)[inside] = tokens
        self._graphs.run(graph)
        states, embedding, hidden = (part[inside] for part in graph.results)
        return Encoded(
            states,
            embedding,
            hidden,
            static=[graph.results[0], graph.results[2]],
        )

    def _pass(self, rows: int, source: int) -> tuple[Function, list[Tensor]]:
        """The function of a captured pass, and its input, the tokens."""
        eager = self._eager
        tokens = torch.full(
            (rows, source), eager.pad, dtype=torch.long, device=eager.device
        )

        def encode(inputs: Tensor) -> tuple[Tensor, ...]:
            hidden = tokens.eq(eager.pad)
            states, embedding = eager.states(tokens, hidden)
            # hidden states have weight zero, and zero times NaN is NaN; a row beyond the batch attends to its zeros
            states = states.masked_fill(hidden[..., None], 0.0)
            is_row = ~hidden.all(dim=1, keepdim=True)
            return inputs, states, embedding, hidden & is_row

        return encode, [tokens]
