"""A verifier with a script, and a drafter that knows the answer, for tests of the loop without a model."""

from collections.abc import Sequence

import torch
from hypothesis import HealthCheck, Phase, settings
from torch import Tensor

from fairseq_aggdec.decoding.loop import Verifier
from fairseq_aggdec.lossless.fuzzing.drafters import OracleDrafter

__all__ = ["OracleDrafter"]

BOS, PAD, EOS, UNK = 0, 1, 2, 3
FIRST_WORD = 4


def examples(count: int) -> settings:
    """Hypothesis settings of all property tests: the same examples in every run, and no search for smaller ones."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


class ScriptedVerifier(Verifier):
    """A `loop.Verifier` that prefers each row's target along its path and a hashed token anywhere else.

    It checks what the loop promises: rows without holes, a first block token that the verifier itself has chosen, and
    no row that has already ended.
    """

    START = EOS

    def __init__(self, targets: Sequence[Sequence[int]], vocabulary: int) -> None:
        """
        Args:
            targets: the wanted output of each row, its EOS included.
            vocabulary: V.
        """
        self.targets = [list(target) for target in targets]
        self.vocabulary = vocabulary
        self.read: list[list[int]] = [[] for _ in targets]  # decoder inputs of each row, rejected drafts included
        self.rows_scored = 0
        self.calls = 0

    def logits_after(self, target: list[int], context: list[int]) -> Tensor:
        """V: clear, and different at every position."""
        output = context[1:]
        on_path = context[0] == self.START and output == target[: len(output)] and len(output) < len(target)
        step = len(output)
        best = target[step] if on_path else sum((i + 3) * token for i, token in enumerate(context)) % self.vocabulary
        logits = torch.arange(self.vocabulary) * 0.01
        logits[best] = 4.0 + 0.1 * (step % 7)
        return logits

    def score(self, block: Tensor, starts: Tensor, longest: int) -> Tensor:
        assert block.size(0) == len(self.targets), "finished rows leave the batch"
        assert longest == int(starts.max())
        self.calls += 1
        self.rows_scored += block.size(0)
        logits = torch.empty(*block.shape, self.vocabulary)
        for row, (tokens, start) in enumerate(zip(block.tolist(), starts.tolist(), strict=True)):
            assert start <= len(self.read[row]), "a hole in the cache"
            self.read[row][start:] = tokens
            assert self.read[row][: start + 1] == [self.START, *self.targets[row][:start]], "not the verifier's choice"
            for column in range(len(tokens)):
                logits[row, column] = self.logits_after(self.targets[row], self.read[row][: start + column + 1])
        return logits

    def keep(self, rows: Tensor) -> None:
        self.targets = [self.targets[row] for row in rows.tolist()]
        self.read = [self.read[row] for row in rows.tolist()]


def with_length_cap(target: Sequence[int], max_len: int) -> list[int]:
    """What is left of a target when EOS is forced at position `max_len`."""
    return list(target) if len(target) <= max_len + 1 else [*target[:max_len], EOS]
