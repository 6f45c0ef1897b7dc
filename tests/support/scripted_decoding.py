"""A verifier with a script, and a drafter that knows the answer, for tests of the loop without a model."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, settings
from torch import Tensor

from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Draft, RowSelection
from fairseq_aggdec.engine.plain.choice import PLAIN, choose_block
from tests.support.oracle import OracleDrafter

PAD = 1
EOS = 2
UNK = 3


class OfUnknownLength(OracleDrafter):
    """As from a device that the host does not wait for."""

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        draft = super().propose(outputs, limits)
        assert draft.lengths is not None
        return Draft(draft.tokens, None, limits=draft.lengths, eos=EOS)


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


def outputs_of(texts: Sequence[Sequence[int]]) -> Outputs:
    """Outputs that have grown to these texts."""
    rules = SearchRules(pad=PAD, unk=UNK, eos=EOS, max_len=200, min_len=0)
    outputs = Outputs(torch.full((len(texts),), EOS), rules)
    outputs.are_new = not any(texts)
    for row, text in enumerate(texts):
        outputs.texts[row] += text
    return outputs


def scored(
    verifier: Any,
    tokens: Tensor,
    starts: Tensor,
    widths: Sequence[int] | None = None,
) -> Tensor:
    """What a verifier says of a block, B x W x V; of ragged rows the last token's scores are repeated after it."""
    block = Block.of(tokens, starts.tolist(), widths)
    parts = list(verifier.score(block))
    assert sum(part.size(0) for part in parts) == block.ragged.size
    return block.ragged.spread(torch.cat(parts))


class ScriptedVerifier(Verifier):
    """A `roles.Verifier` that prefers each row's target along its path and a hashed token anywhere else.

    It checks what the loop promises: rows without holes, a first block token that the verifier itself has chosen, and
    no row that has already ended.
    """

    START = EOS

    def __init__(self, targets: Sequence[Sequence[int]], vocabulary: int) -> None:
        """`targets`: the wanted output of each row, its EOS included; `vocabulary`: V."""
        self.targets = [list(target) for target in targets]
        self.vocabulary = vocabulary
        # decoder inputs of each row, rejected drafts included
        self.read: list[list[int]] = [[] for _ in targets]
        self.rows_scored = 0
        self.calls = 0

    def verify(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        return choose_block(self.score(block), PLAIN, block, rules, ranks, sequence)

    def logits_after(self, target: list[int], context: list[int]) -> Tensor:
        """V: clear, and different at every position."""
        output = context[1:]
        on_path = (
            context[0] == self.START
            and output == target[: len(output)]
            and len(output) < len(target)
        )
        step = len(output)
        best = (
            target[step]
            if on_path
            else sum((i + 3) * token for i, token in enumerate(context))
            % self.vocabulary
        )
        logits = torch.arange(self.vocabulary) * 0.01
        logits[best] = 4.0 + 0.1 * (step % 7)
        return logits

    def score(self, block: Block) -> Iterator[Tensor]:
        starts = block.starts.tolist()
        ragged = block.ragged
        assert len(starts) == len(self.targets), "finished rows leave the batch"
        assert (block.first_start, block.last_start) == (min(starts), max(starts))
        self.calls += 1
        self.rows_scored += len(starts)
        widths = ragged.rows.bincount(minlength=len(starts)).tolist()
        logits = []
        for row, (tokens, width, start) in enumerate(
            zip(block.tokens.tolist(), widths, starts, strict=True)
        ):
            assert start <= len(self.read[row]), "a hole in the cache"
            self.read[row][start:] = tokens[:width]
            assert self.read[row][: start + 1] == [
                self.START,
                *self.targets[row][:start],
            ], "not the verifier's choice"
            logits += [
                self.logits_after(self.targets[row], self.read[row][: start + n + 1])
                for n in range(width)
            ]
        yield torch.stack(logits)

    def keep(self, order: RowSelection) -> None:
        self.targets = [self.targets[row] for row in order.rows]
        self.read = [self.read[row] for row in order.rows]
