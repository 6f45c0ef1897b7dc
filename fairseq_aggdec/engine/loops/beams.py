"""Beam search on the device: one kernel behind each pass takes a step of the beam (`kernels.take_step`).

`decoding.beam.plain.plain_beam_search`, on the host, is the definition: the records are its own.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.search import (
    BeamOptions,
    BeamStats,
    Output,
    best_first,
    output_of,
)
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.engine.cuda.launching import launch_options
from fairseq_aggdec.engine.graphs.buffers import rows_bucket, tree_width_bucket
from fairseq_aggdec.engine.graphs.graph_cache import Function
from fairseq_aggdec.engine.graphs.passes import Chooser, Passes
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.loops.loop import Loop, Plan
from fairseq_aggdec.engine.loops.state import GOES, Part, State

_LARGEST = 32
"""of N: a program sorts N (N + 2) candidates in its registers"""
_STEPS = 32
"""T is a multiple: each step has N slots of the cache, to all of which PyTorch's operations attend"""


class BeamLoop(Loop):
    """A beam search of one batch with a step in each pass."""

    def __init__(
        self, runner: Graphs, rules: SearchRules, options: BeamOptions
    ) -> None:
        width = tree_width_bucket(options.size)
        most = min(options.max_len + 2, 2 * runner.memory.cache.source + width)
        super().__init__(
            runner, rules, width, -(-most // _STEPS) * _STEPS, options.size
        )
        self._options = options

    @staticmethod
    def serves(options: BeamOptions) -> bool:
        return options.size <= _LARGEST

    def table(self, rows: int, capacity: int) -> list[Part]:
        one = (rows, 1)
        beam = (rows, self.width)
        past = (rows, self.width, capacity)
        ends = (rows, self._options.size)
        return [
            # the number of a sentence's hypotheses, the last of which fills up W; the number of steps taken
            Part("counts", one),
            Part("steps", one),
            # `GOES` and others of `state`; the number of finished hypotheses; not 0 where scores were NaN
            Part("going", one),
            Part("finished", one),
            Part("spoiled", one),
            # what is read next, and where; the cumulative log-probability
            Part("tokens", beam),
            Part("positions", beam),
            Part("sums", beam, torch.float64),
            # cache slots, see `TreeBlock`
            Part("paths", past),
            # `counts` before each step
            Part("widths", (rows, capacity)),
            # the hypotheses behind each step: last token, place of what it extends, `sums`
            Part("words", past),
            Part("parents", past),
            Part("totals", past, torch.float64),
            # the finished hypotheses: step and place of what EOS has extended, `sums`
            Part("end_steps", ends),
            Part("end_parents", ends),
            Part("end_sums", ends, torch.float64),
        ]

    def start(self, state: State, first_tokens: np.ndarray) -> None:
        state.counts[:] = 1
        state.going[:] = GOES
        state.tokens[:] = first_tokens[:, None]

    def turn(self, state: State, plan: Plan) -> Function:
        from fairseq_aggdec.engine.loops.kernels import take_step  # imports Triton

        passes = self.runner.passes
        chooser = self.runner.chooser(self.rules)
        size = self._options.size
        count = self._options.entries
        parts = tuple(vars(state).values())
        sizes = (state.paths.size(2), self.width, count)
        options = {
            "size": size,
            "padded_beams": rows_bucket(self.width),
            "padded_entries": rows_bucket(count),
            "padded_candidates": rows_bucket(2 * size),
            **launch_options(passes.device),
        }

        def step(limits: Tensor) -> tuple[Tensor]:
            features = passes.features(
                state.tokens, state.positions, plan.shape, paths=state.paths
            ).flatten(0, 1)
            entries = _entries(
                passes, features, state.positions.flatten(), limits, count, chooser
            )
            take_step[(plan.shape.rows,)](
                parts, tuple(entries), limits, sizes, **options
            )
            return (state.going,)

        return step

    def found(self, state: State) -> list[Any | None]:
        row = np.arange(len(state.going))[:, None]
        place = state.end_parents
        last = state.end_steps
        longest = last.max(initial=0)
        state.end_words = np.zeros((*place.shape, longest), np.int64)
        state.end_totals = np.zeros((*place.shape, longest))
        # all hypotheses at once, from their ends to their beginnings
        for step in range(longest - 1, -1, -1):
            state.end_words[..., step] = state.words[row, place, step]
            state.end_totals[..., step] = state.totals[row, place, step]
            place = np.where(step < last, state.parents[row, place, step], place)
        return super().found(state)

    def sentence(self, row: State) -> tuple[list[Output], BeamStats] | None:
        if row.spoiled[0]:
            return None
        outputs = []
        for number in range(row.finished[0]):
            length = row.end_steps[number]
            tokens = [*row.end_words[number, :length].tolist(), self._options.eos]
            sums = [
                *row.end_totals[number, :length].tolist(),
                float(row.end_sums[number]),
            ]
            outputs.append(output_of(tokens, sums, self._options, None))
        widths = row.widths[: row.steps[0] + 1].tolist()
        return best_first(outputs), BeamStats(widths, list(widths), [1] * len(widths))


def _entries(
    passes: Passes,
    features: Tensor,
    at: Tensor,
    limits: Tensor,
    count: int,
    chooser: Chooser,
) -> Any:
    """The best log-probabilities at each position and their tokens, twice N x `count`."""
    if passes.kernels is not None:
        logits = passes.parts.project(features)
        return passes.kernels.best_entries(
            logits, at, limits, count, chooser.temperature
        )
    *_, scores = passes.likeliest(features, at, limits, 1, chooser)
    return passes.with_forced_end(scores[:], at, limits, chooser).topk(count)
