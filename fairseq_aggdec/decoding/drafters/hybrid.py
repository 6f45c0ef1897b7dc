"""Copying from the source and a model's drafts in one drafter.

Copies are free and, where they are right, long. But behind a token that the source does not have, Algorithm 1 of
papers/000 finds no copy until the output is back on the source's path. There a model drafts: a block drafter, or the
verifier's own proposal heads. And where its draft meets the source again, the rest is copied: a model that foresees a
single token after an edit saves a whole iteration, as the copy behind that token comes at once.

Its rival is a guess of where the source goes on: behind the word that the edit has probably replaced. Which of the two
is better, and whether a copy is to be taken at all, depends on the task and the model. It is learnt from what passes.

In no paper; lossless as any draft is.
"""

import sys
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.input_guided import SourceCopyDrafter, draft_of
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter, Kind, Match, Origin


class Estimates(Protocol):
    """What is known of drafts before they are verified: a `scheduling.goodput.Goodput`."""

    def expected(self, row: int, kind: Kind, length: int) -> float:
        """Tokens that are accepted, on average, of what is worth verifying of a row's draft of a kind, so long."""

    def model_size(self, outputs: Outputs, kinds: Sequence[Kind], instead: Sequence[float]) -> int:
        """How many tokens the model is best asked for, 0 for none: see `scheduling.goodput.Goodput.model_size`."""


class TrustCopies(Estimates):
    """Learns nothing: all copies but guesses are better than what the model drafts, which is asked for other rows."""

    def expected(self, row: int, kind: Kind, length: int) -> float:
        if length == 0:
            return 0.0
        if kind.origin is Origin.MODEL:
            return 1.0
        return 0.0 if kind.origin is Origin.COPY and kind.match is Match.GUESS else 2.0

    def model_size(self, outputs: Outputs, kinds: Sequence[Kind], instead: Sequence[float]) -> int:
        return sys.maxsize if min(instead) < 1.0 else 0


class HybridDrafter(Drafter):
    """A `roles.Drafter` that asks a model where that promises more than what there is to copy."""

    def __init__(self, copier: SourceCopyDrafter, model: Drafter, estimates: Estimates) -> None:
        """Of a copier and a model that are ready for a batch; the model is not asked in every iteration."""
        self._copier = copier
        self._model = model
        self._estimates = estimates

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`."""
        expected = self._estimates.expected
        rows, kinds = self._copier.copies(outputs)
        matches = [kind.match for kind in kinds]
        copied = [expected(row, kind, len(draft)) for row, (draft, kind) in enumerate(zip(rows, kinds, strict=True))]
        size = self._estimates.model_size(outputs, [Kind(Origin.MODEL, match) for match in matches], copied)
        if size > 0:
            drafts = self._model.propose(outputs, [size] * len(rows))
            host = torch.cat([drafts.lengths[:, None], drafts.tokens], dim=1).tolist()
            for row, (match, (length, *tokens)) in enumerate(zip(matches, host, strict=True)):
                draft = tokens[:length]
                modelled, rejoined = Kind(Origin.MODEL, match), Kind(Origin.REJOINED, match)
                if not draft or expected(row, modelled, length) <= copied[row]:
                    continue
                rows[row], kinds[row] = draft, modelled
                joined = self._copier.matchers[row].rejoin(draft)
                if joined is not None and expected(row, rejoined, len(joined)) >= expected(row, modelled, length):
                    rows[row], kinds[row] = joined, rejoined
        return draft_of(rows, kinds, outputs.device)

    def keep(self, rows: Tensor) -> None:
        self._copier.keep(rows)
        self._model.keep(rows)
