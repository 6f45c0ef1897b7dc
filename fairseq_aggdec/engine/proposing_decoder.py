"""The engine of decoders with proposal heads."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.engine.arithmetic.linear import linear
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder
from fairseq_aggdec.models.proposal_heads import ProposalHeads


class _Heads:
    """Some consecutive heads of a `ProposalHeads`."""

    def __init__(self, layer: ProposalHeads, first: int, last: int, arithmetic: Arithmetic) -> None:
        wanted = slice(first - 1 - layer.identity_head, last - layer.identity_head)
        read = wanted if layer.own_hidden else slice(None)  # every head reads the whole of a common hidden layer
        inner, inner_bias = layer.inner.detach()[read], layer.inner_bias.detach()[read]
        outer, outer_bias = layer.outer.detach()[wanted], layer.outer_bias.detach()[wanted]
        self._inner = linear(inner.flatten(0, 1), inner_bias.flatten(), F.relu, arithmetic)
        self._count = outer.size(0)
        self._outer = None
        if self._count == 1 or not layer.own_hidden:
            self._outer = linear(outer.flatten(0, 1), outer_bias.flatten(), None, arithmetic)
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

    def __init__(self, decoder: BlockwiseDecoder, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        super().__init__(decoder, (BlockwiseDecoder,), arithmetic)
        self.can_be_ragged = False  # `proposals` reads any column
        layer = decoder.heads
        self.never_proposed = decoder.never_proposed
        self._first = None if layer.identity_head else _Heads(layer, 1, 1, arithmetic)
        self._layer_of_heads = layer
        self._arithmetic = arithmetic
        self._proposing: tuple[int, _Heads] | None = None  # heads 2 to the largest `last_head` so far
        self._features: Tensor | None = None  # B x W x D of the last block
        self._starts = torch.empty(0, dtype=torch.long)  # B, its first position

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        super().start(encoder_out, temperature)
        self._features = None

    def features(self, block: Tensor | None, starts: Tensor, last_start: int, **options: Any) -> Tensor:
        """See `BlockDecoder.features`; the result is stored for `proposals`."""
        self._features, self._starts = super().features(block, starts, last_start, **options), starts
        return self._features

    def project(self, features: Tensor) -> Tensor:
        """Logits of head 1, ... x D -> ... x V."""
        return super().project(features if self._first is None else self._first(features).squeeze(-2))

    def proposals(self, lengths: Tensor, last_head: int) -> Tensor | None:
        if self._features is None:
            return None
        if self._proposing is None or self._proposing[0] < last_head:
            self._proposing = last_head, _Heads(self._layer_of_heads, 2, last_head, self._arithmetic)
        chosen_at = lengths - 2 - self._starts  # B: the column that read the token before the last
        rows = torch.arange(lengths.size(0), device=lengths.device)
        proposed = self._proposing[1](self._features[rows, chosen_at])  # B x N x D
        return super().project(proposed[:, : last_head - 1])

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        if self._features is not None:
            self._features, self._starts = self._features[rows], self._starts[rows]
