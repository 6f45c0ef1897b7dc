"""Dependence between neighbours in a draft: each token's scores also depend on the draft token before it.

The papers' drafter predicts the tokens of a block independently of each other: a position that hesitates between two
translations may continue the one that its neighbour did not choose. This head corrects a position's features by the
token before it. All expensive work stays parallel: only a few candidates at each position are compared with each other
(`engine.transition_tables`). The idea is that of structured non-autoregressive decoding (Sun et al., Fast Structured
Decoding for Sequence Models, 2019); the correction is computed as in sequentially dependent draft heads (Ankner et al.,
Hydra, 2024).
"""

import torch
from torch import Tensor, nn


class TransitionHead(nn.Module):
    """features + W relu(A embedding of the token before + B features + b)."""

    def __init__(self, embed_dim: int, dim: int) -> None:
        """Features and embeddings are D = `embed_dim` wide, the hidden layer is H = `dim` wide."""
        super().__init__()
        self.before = nn.Linear(embed_dim, dim, bias=False)
        self.here = nn.Linear(embed_dim, dim)
        self.out = nn.Linear(dim, embed_dim, bias=False)
        nn.init.zeros_(self.out.weight)  # a drafter that was trained without it starts unchanged

    def forward(self, features: Tensor, before: Tensor) -> Tensor:
        """The features of block positions, ... x D, corrected by the embedding of the token before each, ... x D."""
        return features + self.out(torch.relu(self.before(before) + self.here(features)))
