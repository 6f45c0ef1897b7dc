"""Proposal heads of a decoder, which draft from what its last pass has computed."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.engine.memory import Memory
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.runner import Runner
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder, ProposalHeads


class HeadRange:
    """Some consecutive heads of a `ProposalHeads`, fused where they can be."""

    def __init__(
        self, layer: ProposalHeads, first: int, last: int, backend: PlainBackend
    ) -> None:
        wanted = slice(first - 1 - layer.identity_head, last - layer.identity_head)
        # every head reads the whole of a common hidden layer
        read = wanted if layer.own_hidden else slice(None)
        inner = layer.inner.detach()[read].flatten(0, 1)
        outer = layer.outer.detach()[wanted]
        outer_bias = layer.outer_bias.detach()[wanted]
        self.count = outer.size(0)
        self._inner = backend.product(
            inner, layer.inner_bias.detach()[read].flatten(), F.relu
        )
        self._outer = None
        if self.count == 1 or not layer.own_hidden:
            self._outer = backend.product(outer.flatten(0, 1), outer_bias.flatten())
        self._weights = outer.transpose(1, 2)  # N x hidden x D
        self._bias = outer_bias[:, None]  # N x 1 x D

    def __call__(self, features: Tensor) -> Tensor:
        """The input of the vocabulary projection, ... x D -> ... x N x D."""
        hidden = self._inner(features)  # ... x (N hidden), or the whole hidden layer
        if self._outer is not None:
            change = self._outer(hidden).unflatten(-1, (self.count, -1))
        else:
            by_head = hidden.view(
                -1, self.count, hidden.size(-1) // self.count
            ).transpose(0, 1)
            change = torch.baddbmm(self._bias, by_head, self._weights)
            change = change.transpose(0, 1)
            change = change.reshape(
                *features.shape[:-1],
                self.count,
                -1,
            )
        return features.unsqueeze(-2) + change


class Proposals:
    """A `heads.ProposingModel`: heads 2 to k, over the features of its decoder's last pass."""

    def __init__(
        self, decoder: BlockwiseDecoder, parts: Parts, runner: Runner, memory: Memory
    ) -> None:
        """`parts`: of the decoder, whose head 1 verifies from now on; `runner` and `memory`: of its passes."""
        layer = decoder.heads
        self.sync_is_costly = parts.backend.sync_is_costly
        parts.first_head = (
            None if layer.identity_head else HeadRange(layer, 1, 1, parts.backend)
        )
        memory.keeps_features = True
        self._memory = memory
        self._parts = parts
        self._runner = runner
        self._layer = layer
        self._never_proposed = decoder.never_proposed
        # 2 to the largest `last_head` so far
        self._heads: HeadRange | None = None

    def propose(self, lengths: Sequence[int], last_head: int) -> Tensor | None:
        features = self._memory.features
        if features is None:
            return None
        columns = np.subtract(lengths, features.starts) - 2  # of the token before last
        vocabulary = self._parts.vocabulary
        heads = self._heads_up_to(last_head)
        never = self._never_proposed

        def best(features: Tensor) -> Tensor:
            """The best tokens of heads 2 to `last_head`, R x D -> R x (`last_head` - 1)."""
            by_head = heads(features)[:, : last_head - 1]
            return best_tokens(vocabulary(by_head), never)

        return self._runner.propose(columns, best, last_head)

    def _heads_up_to(self, last_head: int) -> HeadRange:
        """Heads 2 to `last_head` at least."""
        if self._heads is None or self._heads.count < last_head - 1:
            self._heads = HeadRange(self._layer, 2, last_head, self._parts.backend)
        return self._heads
