"""Dependence between neighbours in a draft: each token's scores also depend on the draft token before it.

The papers' drafter predicts the tokens of a block independently of each other, so neighbours may mix two translations.
This head corrects a position's features by the token before it. All expensive work stays parallel: only the best
candidates of each position are compared with each other (`engine.draft_decoder`). The idea is that of structured
non-autoregressive decoding (Sun et al., Fast Structured Decoding for Sequence Models, 2019); the correction is computed
as in sequentially dependent draft heads (Ankner et al., Hydra, 2024).
"""

import torch
from torch import Tensor, nn


class TransitionHead(nn.Module):
    """features + W relu(A embedding of the token before + B features + b)."""

    def __init__(self, embed_dim: int, dim: int) -> None:
        """`embed_dim`: D, the width of features and embeddings; `dim`: H, the width of the hidden layer."""
        super().__init__()
        self.before = nn.Linear(embed_dim, dim, bias=False)
        self.here = nn.Linear(embed_dim, dim)
        self.out = nn.Linear(dim, embed_dim, bias=False)
        nn.init.zeros_(self.out.weight)  # a drafter trained without the head starts unchanged

    def forward(self, features: Tensor, before: Tensor) -> Tensor:
        """The features of block positions, ... x D, corrected by the embedding of the token before each, ... x D."""
        return features + self.out(torch.relu(self.before(before) + self.here(features)))
