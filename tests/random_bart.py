"""Small random models of fairseq's BART, and documents for them."""

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.bart import BARTModel
from torch import Tensor

from tests.random_models import TINY, random_batch, random_network

BARTS = ("bart_base", "bart_large", "bart_12_2", "mbart_base")


def bart_options(arch: str = "bart_base", **changes: Any) -> Namespace:
    """What `fairseq-train --arch ARCH` leaves in a checkpoint, with tiny sizes."""
    args = Namespace(arch=arch, task="translation", **{**TINY, **changes})
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def random_bart(
    arch: str,
    seed: int,
    words: Dictionary,
    eos_share: float = 0.0,
    positions: int = 64,
    layers: int = 2,
    **changes: Any,
) -> BARTModel:
    """A BART with random weights, whose tokens depend on what was read."""
    changes = {"max_target_positions": positions, "decoder_layers": layers, **changes}
    return random_network(arch, seed, words, words, eos_share, **changes)


def batch_with_bos(seed: int, words: Dictionary, lengths: list[int]) -> dict[str, Any]:
    """Random sources `<s> ... </s>`, as BART's own interface encodes them, padded on the right."""
    sample = random_batch(seed, words, lengths, left_pad=False)
    net_input = sample["net_input"]
    tokens: Tensor = net_input["src_tokens"]
    begin = torch.full_like(tokens[:, :1], words.bos())
    net_input.update(src_tokens=torch.cat([begin, tokens], dim=1), src_lengths=net_input["src_lengths"] + 1)
    return sample
