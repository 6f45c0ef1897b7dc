"""Passes over trees in CUDA graphs, which find the best entries behind each prefix of a beam search."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.engine.graphs.buffers import positions_bucket, tree_width_bucket
from fairseq_aggdec.engine.graphs.captured import LIMITS, Captured, Shape, limits_of
from fairseq_aggdec.engine.graphs.graphs import Function


def verify(captured: Captured, block: TreeBlock, rules: SearchRules, count: int) -> Entries | None:
    """As `beam.roles.TreeVerifier.verify_tree`, in one part; None where no graph can choose."""
    last = block.last_position
    shape = captured.fitting(tree_width_bucket(block.ragged.width), positions_bucket(block.end))
    is_forced = last >= rules.max_len  # the end of a sentence; the kernels know of it
    if shape is None or not captured.allows(rules, shape, block.first_position):
        return None
    if is_forced and captured.kernels is None:
        return None
    longest = positions_bucket(last + 1)
    key = ("tree", shape, longest, count, rules.pad, rules.eos, captured.memory.temperature)
    size = LIMITS + shape.tokens * (2 + longest)
    graph = captured.graphs.get(key, size, lambda: (_pass(captured.weak, shape, longest, count, rules), ()))
    numbers = graph.numbers()
    numbers[:LIMITS] = limits_of(rules)
    table = numbers[LIMITS:].reshape(shape.rows, shape.width, 2 + longest)
    rows, written = len(block.ragged.widths), block.paths.size(1)
    tokens, at, paths = (part.numpy() for part in (block.tokens, block.positions, block.paths))
    is_own: Any = slice(None)
    if not (block.ragged.is_full and block.ragged.width == shape.width):
        widths, columns = np.array(block.ragged.widths)[:, None], np.arange(shape.width)
        ends, is_own = widths.cumsum(axis=0), columns < widths
        # a sentence's last prefix fills up its row
        read = np.minimum(ends - widths + columns, ends - 1).ravel()
        tokens, at, paths = tokens[read], at[read], paths[read]
    own = table[:rows]
    own[..., 0], own[..., 1] = tokens.reshape(own.shape[:2]), at.reshape(own.shape[:2])
    own[..., 2 : 2 + written] = paths.reshape(*own.shape[:2], written)
    own[..., 2 + written :], table[rows:] = own[..., 1 + written, None], 0  # other rows read symbol 0 at position 0
    captured.graphs.run(graph)
    values, names = graph.read().reshape(2, shape.rows, shape.width, count)[:, :rows][:, is_own].copy()
    values, names = values.reshape(-1, count), names.reshape(-1, count).astype(np.int64)
    own = np.arange(shape.tokens).reshape(shape.rows, -1)[:rows][is_own].ravel()
    whole = graph.results[0][torch.from_numpy(own)] if graph.results else None
    return Entries(torch.from_numpy(values), torch.from_numpy(names), whole)


def _pass(captured: Captured, shape: Shape, longest: int, count: int, rules: SearchRules) -> Function:
    """The function of a pass with paths of `longest` slots."""
    waits, pad, eos = captured.backend.reads_wait, rules.pad, rules.eos

    def read_tree(numbers: Tensor) -> tuple[Tensor, ...]:
        table = numbers[LIMITS:].view(shape.rows, shape.width, 2 + longest)
        tokens, positions, paths = table[..., 0], table[..., 1], table[..., 2:]
        features = captured.layered(tokens, positions, shape, paths=paths).flatten(0, 1)
        at, limits = positions.flatten().contiguous(), numbers[:LIMITS]
        if captured.kernels is None or not waits:
            values, names, whole = captured.likeliest(features, count, pad, eos, at < limits[2])
        if captured.kernels is not None:
            logits = captured.parts.project(features)
            values, names = captured.kernels.best_entries(logits, at, limits, count, captured.memory.temperature)
        found = torch.stack([values, names.float()])
        if waits:
            return (found,)
        others = torch.arange(captured.parts.symbols, device=captured.device) != eos
        return found, whole[:].masked_fill((at >= limits[3])[:, None] & others, -torch.inf)

    return read_tree
