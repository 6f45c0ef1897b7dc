"""Random drafters of every shape, and what they read."""

from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.support.random_models import dictionary, random_batch, random_drafter

WORDS = dictionary(20)
K = 5


def drafter(shape: str, **changes: Any) -> NarDrafterModel:
    return random_drafter(shape, 3, WORDS, WORDS, changes.pop("block_size", K), **changes)


def batch(lengths: list[int], left_pad: bool = True) -> dict[str, Tensor]:
    return random_batch(1, WORDS, lengths, left_pad)["net_input"]


def prefixes(rows: int, width: int) -> Tensor:
    tokens = torch.randint(WORDS.nspecial, len(WORDS), (rows, width), generator=torch.Generator().manual_seed(5))
    tokens[:, 0] = WORDS.eos()
    return tokens
