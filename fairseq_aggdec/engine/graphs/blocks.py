"""Passes over blocks in CUDA graphs, which choose the next token after each token of a block."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen
from fairseq_aggdec.engine.graphs.captured import LIMITS, Captured, Shape, limits_of
from fairseq_aggdec.engine.graphs.graphs import Function, Graph


def verify(captured: Captured, block: Block, rules: SearchRules, ranks: int) -> Chosen | None:
    """As `roles.Verifier.verify`; None where no graph can choose."""
    shape = captured.shape_of(block.ragged.width, block.last_start)
    common = rules.common_prefix if block.last_start == 0 else []
    forced = len(common[0]) if common else 0  # the block begins with these tokens after the first
    if shape is None or not captured.allows(rules, shape, block.first_start + forced):
        return None
    graph = _run(captured, block, shape, rules, ranks > 0 or forced > 0)
    found, rows, ragged = graph.read().reshape(-1, shape.rows, shape.width), len(block.lasts), block.ragged
    # copies, since the next pass overwrites what it reads and finds; by numpy, whose operations take less time
    inside: Any = (slice(rows), slice(ragged.width))
    if not ragged.is_full:
        inside = np.arange(shape.width) < np.array([*ragged.widths, *[0] * (shape.rows - rows)])[:, None]
    seen = () if graph.inputs else (graph.numbers()[LIMITS:].reshape(shape.rows, -1)[:, 1:],)
    names, numbers = [*seen, *found][:2], found[2 - len(seen) :]
    if forced:
        names[1][:, :forced], numbers[0][:, :forced] = names[0][:, 1 : 1 + forced], numbers[2][:, :forced]
        numbers = numbers if ranks else numbers[:1]
    read, tokens = (torch.from_numpy(vector[inside].astype(np.int64).ravel()) for vector in names)
    log_probs, *judged = (torch.from_numpy(vector[inside].flatten()) for vector in numbers)
    if judged:
        must_end, drafted, higher = judged
        judged = [drafted.masked_fill(must_end.bool(), -torch.inf), higher]
    return Chosen(read, tokens, log_probs, *judged)


def read(captured: Captured, block: Block) -> Tensor | None:
    """Decoder output at all columns of a block, B x W x D; None where the block is too large for a graph."""
    shape = captured.shape_of(block.ragged.width, block.last_start)
    if shape is None:
        return None
    return _run(captured, block, shape).results[0][: len(block.lasts), : block.ragged.width]


def _run(
    captured: Captured, block: Block, shape: Shape, rules: SearchRules | None = None, judges: bool = False
) -> Graph:
    """Run a pass over a block, asynchronously. `rules`: it chooses tokens; `judges`: it scores the draft tokens."""
    rows, drafted = len(block.lasts), block.ragged.width - 1
    seen = not captured.backend.reads_wait or block.draft.device != captured.device
    special = None if rules is None else (rules.pad, rules.eos)
    key = ("block", shape, seen, judges, special, captured.memory.temperature)
    size = LIMITS + shape.rows * (1 + shape.width)
    graph = captured.graphs.get(key, size, lambda: _pass(captured.weak, shape, seen, judges, special))
    numbers = graph.numbers()
    numbers.fill(0)  # rows of the bucket beyond the batch read symbol 0 at position 0
    if rules is not None:
        numbers[:LIMITS] = limits_of(rules)
    table = numbers[LIMITS:].reshape(shape.rows, -1)
    table[:rows, 0], table[:rows, 1] = block.known_starts, block.lasts
    if drafted and seen:
        table[:rows, 2 : 2 + drafted] = block.draft[:, :drafted].numpy()
    elif drafted:
        graph.inputs[0][:rows, :drafted] = block.draft[:, :drafted]
    captured.graphs.run(graph)
    if captured.keep_features is not None:
        captured.keep_features(block, graph.results[0])
    return graph


def _pass(
    captured: Captured, shape: Shape, seen: bool, judges: bool, special: tuple[int, int] | None
) -> tuple[Function, list[Tensor]]:
    """The function of `_run`, and its input: the drafts, unless they are on the host (`seen`)."""
    drafts = [] if seen else [torch.zeros(shape.rows, shape.width - 1, dtype=torch.long, device=captured.device)]
    columns = torch.arange(shape.width, device=captured.device)

    def read_block(numbers: Tensor) -> tuple[Tensor, ...]:
        limits, table = numbers[:LIMITS], numbers[LIMITS:].view(shape.rows, -1)
        starts, tokens = table[:, :1], torch.cat([table[:, 1:2], *drafts], dim=1) if drafts else table[:, 1:]
        positions = starts + columns
        features = captured.layered(tokens, positions, shape)
        if special is None:
            return limits[:0], features
        found = captured.chosen(features.flatten(0, 1), tokens, positions.flatten(), limits, *special, judges)
        if drafts:
            found = torch.cat([tokens.reshape(1, -1).float(), found])
        return found, *([] if captured.keep_features is None else [features])

    return read_block, drafts
