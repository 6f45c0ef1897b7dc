"""Measures the trained drafter on the validation set, at several block sizes, beside greedy decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fairseq_aggdec.lab.bench.alarm import compare_with_greedy, print_differences, refuse_differences
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import compare
from fairseq_aggdec.lab.bench.subject import Runners, Subject
from fairseq_aggdec.lab.drafter_training.record import Measured
from fairseq_aggdec.lab.grid import TERMINAL, text_table

SENTENCES = 100
"""the most sentences that are decoded, one at a time"""
ROUNDS = 2
_SHARES = (0.4, 0.6, 0.8, 1.0)
"""the block sizes that are tried, as shares of the one that the drafter is trained with"""


def block_sizes(trained: int) -> list[int]:
    """The block sizes that are tried."""
    return sorted({max(1, round(share * trained)) for share in _SHARES})


def measure(subject: Subject, sizes: Sequence[int], until: float = math.inf) -> list[Measured]:
    """Decode the sentences by `greedy` and by `gad` with each block size, in the same rounds.

    Args:
        subject: verifier, drafter and sentences.
        sizes: the block sizes.
        until: when no second round begins, on the clock of `time.monotonic`.

    Raises:
        AggdecError: an output is not that of greedy decoding.
    """
    with Runners(subject) as runners:
        made = [runners.make(Mode.parse("greedy"), 1)]
        for size in sizes:
            made.append(runners.make(replace(Mode.parse("gad"), options={"block_size": size}), 1))
        greedy, *results = compare(made, ROUNDS, until)
        different = compare_with_greedy(made, [greedy, *results], runners.precision)
        print_differences(different, runners.any_task().target_dictionary.symbols)
        refuse_differences(different)
    found = []
    for size, result in zip(sizes, results, strict=True):
        tokens = run_of(result, subject.precision).mean_accepted_tokens
        assert tokens is not None  # all modes of this plugin count them
        found.append(Measured(size, round(tokens, 3), round(greedy.seconds / result.seconds, 3)))
    return found


def fastest(measured: Sequence[Measured]) -> Measured:
    """The block size with the largest speed-up."""
    return max(measured, key=lambda one: one.speed_up)


def table(measured: Sequence[Measured]) -> str:
    """A row for greedy decoding and for each block size; `Measured.needed` says what is needed."""
    rows = [["greedy", "", "1.00", "", "1.00x"]]
    for one in measured:
        rows.append(["gad", str(one.block_size), f"{one.tokens:.2f}", f"{one.needed:.2f}", f"{one.speed_up:.2f}x"])
    return text_table(["mode", "k", "tokens an iteration", "needed", "over greedy"], rows, TERMINAL)
