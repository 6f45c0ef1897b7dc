"""Proposal heads of a decoder, which draft from what its last pass has computed."""

from collections.abc import Sequence
from weakref import proxy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.graphs.captured import Captured
from fairseq_aggdec.engine.graphs.graphs import Function
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.layers import keep_rows
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder, ProposalHeads


class _Heads:
    """Some consecutive heads of a `ProposalHeads`."""

    def __init__(self, layer: ProposalHeads, first: int, last: int, backend: Backend) -> None:
        wanted = slice(first - 1 - layer.identity_head, last - layer.identity_head)
        read = wanted if layer.own_hidden else slice(None)  # every head reads the whole of a common hidden layer
        inner, inner_bias = layer.inner.detach()[read], layer.inner_bias.detach()[read]
        outer, outer_bias = layer.outer.detach()[wanted], layer.outer_bias.detach()[wanted]
        self._inner = backend.product(inner.flatten(0, 1), inner_bias.flatten(), F.relu)
        self._count = outer.size(0)
        self._outer = None
        if self._count == 1 or not layer.own_hidden:
            self._outer = backend.product(outer.flatten(0, 1), outer_bias.flatten())
        self._weights, self._bias = outer.transpose(1, 2), outer_bias[:, None]  # N x hidden x D, N x 1 x D

    def __call__(self, features: Tensor) -> Tensor:
        """The input of the vocabulary projection, ... x D -> ... x N x D."""
        hidden = self._inner(features)  # ... x (N hidden), or the whole hidden layer
        if self._outer is not None:
            change = self._outer(hidden).unflatten(-1, (self._count, -1))
        else:
            by_head = hidden.view(-1, self._count, hidden.size(-1) // self._count).transpose(0, 1)
            change = torch.baddbmm(self._bias, by_head, self._weights).transpose(0, 1)
            change = change.reshape(*features.shape[:-1], self._count, -1)
        return features.unsqueeze(-2) + change


class Proposals:
    """A `heads.ProposingModel`: heads 2 to k, over the features of its decoder's last pass."""

    def __init__(self, decoder: BlockwiseDecoder, parts: Parts, captured: Captured | None) -> None:
        """`parts`: of the decoder, whose head 1 verifies from now on; `captured`: its graphs, of which heads are one.

        The next proposals of a graph overwrite its last.
        """
        layer, backend = decoder.heads, parts.backend
        self.reads_wait = backend.reads_wait
        parts.first_head = None if layer.identity_head else _Heads(layer, 1, 1, backend)
        self._parts, self._captured, self._layer_of_heads = parts, captured, layer
        self._never_proposed = decoder.never_proposed
        self._heads: tuple[int, _Heads] | None = None  # 2 to the largest `last_head` so far
        self._features: Tensor | None = None  # B x W x D of the last block, or R x W x D of a graph
        self._starts: Tensor | list[int] = []  # B, its first position; on the host after a graph
        self._weak = proxy(self)  # as `Captured.weak`
        if captured is not None:
            proposals = self._weak
            captured.keep_features = lambda block, features: proposals.read(features, list(block.known_starts))

    def start(self) -> None:
        """A new batch begins."""
        self._features = None

    def read(self, features: Tensor, starts: Tensor | list[int]) -> None:
        """Store the features of a pass, from the first position of each row."""
        self._features, self._starts = features, starts

    def keep(self, order: Order) -> None:
        """Keep only these rows."""
        if self._features is None:
            return
        if isinstance(self._starts, list):
            keep_rows(self._features, order)  # in place: a graph reads it
            self._starts = [self._starts[row] for row in order.rows]
        else:
            self._features, self._starts = self._features[order.tensor], self._starts[order.tensor]

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        features = self._features
        if features is None:
            return None
        if isinstance(self._starts, list):
            assert self._captured is not None
            graphs, key = self._captured.graphs, ("heads", features.data_ptr(), *features.shape, last_head)
            graph = graphs.get(key, features.size(0), lambda: (self._pass(features, last_head), ()))
            numbers = graph.numbers()
            numbers.fill(0)
            numbers[: len(lengths)] = np.subtract(lengths, self._starts) - 2
            graphs.run(graph)
            return graph.results[0][: len(lengths)]
        rows = torch.arange(len(lengths), device=features.device)
        chosen_at = torch.tensor(lengths).to(rows.device) - 2 - self._starts  # B: the column of the token before last
        return self._best(self._heads_up_to(last_head), features[rows, chosen_at], last_head)

    def _pass(self, features: Tensor, last_head: int) -> Function:
        """The function of a graph, from the column of each row."""
        rows, heads = torch.arange(features.size(0), device=features.device), self._heads_up_to(last_head)
        proposals = self._weak

        def propose(columns: Tensor) -> tuple[Tensor, ...]:
            return columns[:0], proposals._best(heads, features[rows, columns], last_head)

        return propose

    def _heads_up_to(self, last_head: int) -> _Heads:
        """Heads 2 to `last_head` at least."""
        if self._heads is None or self._heads[0] < last_head:
            self._heads = last_head, _Heads(self._layer_of_heads, 2, last_head, self._parts.backend)
        return self._heads[1]

    def _best(self, heads: _Heads, features: Tensor, last_head: int) -> Tensor:
        """The best tokens of heads 2 to `last_head`, B x D -> B x (`last_head` - 1)."""
        logits = self._parts.vocabulary(heads(features)[:, : last_head - 1])
        return best_tokens(logits, self._never_proposed)
