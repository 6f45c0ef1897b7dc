"""Random pairs as a task hands them to a criterion."""

from typing import Any

import torch
from fairseq.data import Dictionary

from tests.support.random_models import random_batch


def random_pairs(
    lengths: list[int], words: Dictionary, generator: torch.Generator
) -> dict[str, Any]:
    """Targets of the given lengths (EOS not counted), padded on the right, and sources as long."""
    source = random_batch(1, words, [length + 1 for length in lengths])["net_input"]
    target = torch.randint(
        words.nspecial,
        len(words),
        (len(lengths), max(lengths) + 1),
        generator=generator,
    )
    for row, length in enumerate(lengths):
        target[row, length] = words.eos()
        target[row, length + 1 :] = words.pad()
    previous = target.roll(1, dims=1)
    previous[:, 0] = words.eos()
    return {"target": target, "net_input": {**source, "prev_output_tokens": previous}}
