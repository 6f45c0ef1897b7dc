"""Small models and batches on a device, for tests/cuda."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from fairseq import utils

from tests.support.random_models import random_batch
from tests.support.small_generators import FEW_WORDS

LENGTHS = ([9], [5, 0, 20, 1, 12, 2, 7], [3 + n % 11 for n in range(32)])
LIMIT: Any = {"max_len_b": 24}
WIDE: dict[str, Any] = {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("embed_dim", 64), ("ffn_embed_dim", 64), ("attention_heads", 2))
}
"""sizes that Triton's kernels support"""


def on(device: torch.device, model: Any, dtype: torch.dtype = torch.float32) -> Any:
    return copy.deepcopy(model).to(device, dtype)


def batch(
    seed: int, lengths: Sequence[int], device: torch.device, words: Any = FEW_WORDS
) -> dict[str, Any]:
    sample = random_batch(seed, words, list(lengths))
    moved: dict[str, Any] = utils.apply_to_sample(
        lambda tensor: tensor.to(device), sample
    )
    return moved
