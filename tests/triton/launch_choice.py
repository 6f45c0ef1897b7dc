"""The kernels of `choice.py` in the sizes of base, an uneven model, big, and the largest vocabulary."""

import torch

from fairseq_aggdec.engine.cuda.choice import best_entries, chosen, embedded, projected


def launch(dtype: torch.dtype) -> None:
    numbers = torch.zeros(5, dtype=torch.long)
    for symbols, count in ((32_768, 7), (260_000, 22)):
        logits = torch.zeros(5, symbols, dtype=dtype)
        best_entries(logits, numbers, numbers, count)
        for proposed in (numbers, None):
            chosen(logits, numbers, numbers, proposed)
    for dim in (512, 768, 1024):
        features, weight = torch.zeros(5, dim, dtype=dtype), torch.zeros(1000, dim, dtype=dtype)
        embedded(numbers, numbers, weight, 1.0, weight, weight)
        for bias in (None, weight[:, 0].contiguous()):
            projected(features, weight, bias)
