"""Several steps of greedy search in one CUDA graph, as an ordinary model drafts."""

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.graphs.buffers import positions_bucket, width_bucket
from fairseq_aggdec.engine.graphs.captured import LIMITS, Captured, Shape, limits_of
from fairseq_aggdec.engine.graphs.graphs import Function


def continued(captured: Captured, block: Block, steps: int, rules: SearchRules) -> list[list[int]] | None:
    """The next `steps` tokens of greedy search after each row of a block, B x k; None where no graph does it.

    All but the last are read, too.
    """
    width = width_bucket(block.ragged.width)  # what is behind a row's tokens is written, too
    end = block.last_start + max(width, block.ragged.width + steps - 1)
    shape = captured.fitting(width, positions_bucket(end))
    if shape is None or not captured.allows(rules, shape, block.first_start):
        return None
    key = ("steps", shape, steps, rules.pad, rules.eos)
    size = LIMITS + shape.rows * (2 + shape.width)
    graph = captured.graphs.get(key, size, lambda: (_pass(captured, shape, steps, rules.pad, rules.eos), ()))
    numbers = graph.numbers()
    numbers.fill(0)
    numbers[:LIMITS] = limits_of(rules)
    rows = len(block.lasts)
    table = numbers[LIMITS:].reshape(shape.rows, -1)[:rows]
    table[:, 0], table[:, 1] = block.known_starts, np.subtract(block.ragged.widths, 1)
    table[:, 2], table[:, 3 : 2 + block.ragged.width] = block.lasts, block.draft.numpy()
    captured.graphs.run(graph)
    tokens: list[list[int]] = graph.read().reshape(steps, -1)[:, :rows].T.astype(np.int64).tolist()
    return tokens


def _pass(captured: Captured, shape: Shape, steps: int, pad: int, eos: int) -> Function:
    columns = torch.arange(shape.width, device=captured.device)

    def take_steps(numbers: Tensor) -> tuple[Tensor]:
        limits, table = numbers[:LIMITS], numbers[LIMITS:].view(shape.rows, -1)
        starts, last, tokens = table[:, :1], table[:, 1:2], table[:, 2:]
        at, found = starts + last, []
        features = captured.layered(tokens, starts + columns, shape, wanted=last)
        while True:
            chosen = captured.chosen(features.flatten(0, 1), tokens, at.flatten(), limits, pad, eos, judges=False)
            found.append(chosen[0])
            if len(found) == steps:
                return (torch.stack(found),)
            tokens, at = found[-1].long()[:, None], at + 1
            features = captured.layered(tokens, at, shape._replace(width=1))

    return take_steps
