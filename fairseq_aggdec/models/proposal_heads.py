"""The multi-output feed-forward layer of blockwise parallel decoding (papers/004 §6, Figure 3)."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ProposalHeads(nn.Module):
    """k outputs of one decoder state h: h + W2 relu(W1 h); head i predicts the i-th token from here.

    In the paper every head reads the whole of one hidden layer, which has k times the usual width: W2 has the weights
    of k times k feed-forward layers. With `own_hidden` each head reads its own k-th of the hidden layer: k times less
    to compute and to store. W2 starts at zero: every head begins as the base model's prediction of the next token.
    """

    def __init__(
        self, heads: int, dim: int, hidden: int, dropout: float, identity_head: bool = False, own_hidden: bool = False
    ) -> None:
        """k `heads`, head 1 included, over a decoder's output of width D = `dim`; `hidden`: the hidden width of each.

        With `identity_head` head 1 is h itself, without weights. `dropout` applies to the summand W2 relu(W1 h).
        """
        super().__init__()
        self.heads = heads
        self.identity_head = identity_head
        self.own_hidden = own_hidden
        self.dropout = dropout
        learned = heads - identity_head
        self.inner = nn.Parameter(torch.empty(learned, hidden, dim))
        self.inner_bias = nn.Parameter(torch.zeros(learned, hidden))
        self.outer = nn.Parameter(torch.zeros(learned, dim, hidden if own_hidden else learned * hidden))
        self.outer_bias = nn.Parameter(torch.zeros(learned, dim))
        bound = math.sqrt(6 / (dim + hidden))  # Glorot's, as fairseq's projections
        nn.init.uniform_(self.inner, -bound, bound)

    def forward(self, features: Tensor, head: int) -> Tensor:
        """The input of the vocabulary projection for a head from 1 to k, ... x D -> ... x D."""
        number = head - 1 - self.identity_head
        if number < 0:
            return features
        inner: Tensor = self.inner
        bias: Tensor = self.inner_bias
        if self.own_hidden:
            inner, bias = inner[number : number + 1], bias[number : number + 1]
        hidden = F.relu(F.linear(features, inner.flatten(0, 1), bias.flatten()))
        change = F.linear(hidden, self.outer[number], self.outer_bias[number])
        return features + F.dropout(change, self.dropout, self.training)


def trainable_heads(heads: ProposalHeads, base_is_frozen: bool) -> Sequence[int]:
    """The numbers of the heads that can be trained: all, or all but an identity head 1 on a frozen base."""
    first = 2 if base_is_frozen and heads.identity_head else 1
    return range(first, heads.heads + 1)
