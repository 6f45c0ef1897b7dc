"""The engine of decoders with proposal heads."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.backend import Backend
from fairseq_aggdec.engine.block_decoder import BlockDecoder
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


class ProposingDecoder(BlockDecoder):
    """A `BlockDecoder` that decodes head 1, and a `heads.ProposingModel`."""

    def __init__(self, decoder: BlockwiseDecoder, arithmetic: Arithmetic = AS_THE_MODEL, **options: Any) -> None:
        """`options`: of the base."""
        super().__init__(decoder, (BlockwiseDecoder,), arithmetic, **options)
        self.can_be_ragged = False  # `propose` reads any column
        layer = decoder.heads
        self.reads_wait = self.backend.reads_wait
        self._never_proposed = decoder.never_proposed
        self._first = None if layer.identity_head else _Heads(layer, 1, 1, self.backend)
        self._layer_of_heads = layer
        self._proposing: tuple[int, _Heads] | None = None  # heads 2 to the largest `last_head` so far
        self._features: Tensor | None = None  # B x W x D of the last block
        self._starts = torch.empty(0, dtype=torch.long)  # B, its first position

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        super().start(encoder_out, temperature)
        self._features = None

    def features(self, block: Tensor | None, starts: Tensor, last_start: int, **options: Any) -> Tensor:
        """See `BlockDecoder.features`; the result is stored for `propose`."""
        self._features, self._starts = super().features(block, starts, last_start, **options), starts
        return self._features

    def project(self, features: Tensor) -> Tensor:
        """Logits of head 1, ... x D -> ... x V."""
        return super().project(features if self._first is None else self._first(features).squeeze(-2))

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        if self._features is None:
            return None
        rows = torch.arange(len(lengths), device=self._starts.device)
        chosen_at = torch.tensor(lengths).to(rows.device) - 2 - self._starts  # B: the column of the token before last
        return self._best(self._heads_up_to(last_head), self._features[rows, chosen_at], last_head)

    def _heads_up_to(self, last_head: int) -> _Heads:
        """Heads 2 to `last_head` at least."""
        if self._proposing is None or self._proposing[0] < last_head:
            self._proposing = last_head, _Heads(self._layer_of_heads, 2, last_head, self.backend)
        return self._proposing[1]

    def _best(self, heads: _Heads, features: Tensor, last_head: int) -> Tensor:
        """The best tokens of heads 2 to `last_head`, B x D -> B x (`last_head` - 1)."""
        logits = super().project(heads(features)[:, : last_head - 1])
        return best_tokens(logits, self._never_proposed)

    def keep(self, order: Order) -> None:
        super().keep(order)
        if self._features is not None:
            self._features, self._starts = self._features[order.tensor], self._starts[order.tensor]
