"""Copying from the source and a model's drafts in one drafter.

Copies are free and, where they are right, long. But behind a token that the source does not have, Algorithm 1 of
papers/000 finds no copy until the output is back on the source's path. There a model drafts: a block drafter, or the
verifier's own proposal heads. And where its draft meets the source again, the rest is copied (`Copier.rejoin`): a model
that foresees a single token after an edit saves a whole iteration, as the copy behind that token comes at once.

Its rival is a guess of where the source goes on: behind the word that the edit has probably replaced. Which of the two
is better where depends on the task and the model and is learnt (`CopyTrust`), as is whether copies are to be taken at
all.

In no paper; lossless as any draft is.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.copy_trust import CopyTrust
from fairseq_aggdec.decoding.input_guided import GUESS
from fairseq_aggdec.decoding.loop import Drafter

MODELLED = -3
"""the kind of a model's draft, beside those of copies"""


class Copier(Drafter, Protocol):
    """Drafts from the source: `input_guided.SourceCopyDrafter` and those of `single_source`."""

    def rejoin(
        self,
        tokens: Tensor,
        lengths: Tensor,
        draft: Tensor,
        draft_lengths: Tensor,
        lengths_host: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Go on with the source where somebody else's draft meets it: see `SourceCopyDrafter.rejoin`."""

    def kinds(self) -> list[int]:
        """See `SourceCopyDrafter.kinds`."""


class HybridDrafter(Drafter):
    """A `loop.Drafter` that asks a model where there is nothing to copy.

    The model is not asked where every row has a copy. At its next call it finds more new tokens then, as a
    `loop.Drafter` has to expect anyway.
    """

    def __init__(
        self, copier: Copier, model: Drafter, least_share: float = 0.0, trust: CopyTrust | None = None
    ) -> None:
        """
        Args:
            copier: ready to draft for this batch.
            model: the same.
            least_share: the share of rows without a copy from which on the model is asked; a single row always asks.
            trust: learns which copies to take; None: all but guesses, which are for where the model has no draft.
        """
        self._copier = copier
        self._model = model
        self._least_share = least_share
        self._trust = trust
        self._choices: list[tuple[int, bool] | None] = []  # of rows with a copy: its kind, whether it was taken
        self._takes_copy: Tensor | None = None  # B, at the last call; None: every row does
        self._joints: list[bool | None] = []  # of rows where the model's draft meets the source: whether it was left

    @property
    def block_size(self) -> int | None:
        """Of the model's drafts; copies may be longer."""
        return self._model.block_size

    @block_size.setter
    def block_size(self, size: int | None) -> None:
        self._model.block_size = size

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`."""
        copies, copy_lengths = self._copier.propose(tokens, lengths, lengths_host)
        known = copy_lengths.tolist()
        wanted = self._wanted(known)
        rows, without = len(wanted), wanted.count(0)
        if without == 0 or (rows > 1 and without < self._least_share * rows):
            self._choices = [choice and (choice[0], True) for choice in self._choices]
            self._takes_copy = None
            return copies[:, : max(known)], copy_lengths
        drafts, draft_lengths = self._model.propose(tokens, lengths, lengths_host)
        joined, joined_lengths = self._copier.rejoin(tokens, lengths, drafts, draft_lengths, lengths_host)
        takes_copy = torch.tensor(wanted, device=lengths.device) > 0
        if self._trust is not None:
            meets = ((joined_lengths != draft_lengths) & ~takes_copy).tolist()
            rejoins = self._trust.rejoins()
            self._joints = [rejoins if met else None for met in meets]
            if not rejoins:
                joined, joined_lengths = drafts, draft_lengths
        self._takes_copy = takes_copy = takes_copy | (joined_lengths == 0)
        if without < rows or bool(takes_copy.any()):
            width = max(copies.size(1), joined.size(1))
            copies, joined = (F.pad(tokens, (0, width - tokens.size(1))) for tokens in (copies, joined))
            joined = torch.where(takes_copy[:, None], copies, joined)
            joined_lengths = torch.where(takes_copy, copy_lengths, joined_lengths)
        return joined[:, : int(joined_lengths.max())], joined_lengths

    def unread(self, lengths_host: Sequence[int]) -> int:
        return self._model.unread(lengths_host)

    def kinds(self) -> list[int]:
        """Those of the copies, `MODELLED` where the model has drafted."""
        kinds = self._copier.kinds()
        if self._takes_copy is None:
            return kinds
        return [kind if copied else MODELLED for kind, copied in zip(kinds, self._takes_copy.tolist(), strict=True)]

    def learn(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """See `loop.Drafter.learn`."""
        if self._trust is not None and self._choices:  # something was drafted
            verified = [passed if length > 0 else None for length, passed in zip(drafted, accepted, strict=True)]
            for choice, passed in zip(self._choices, verified, strict=True):
                if choice is not None and passed is not None:
                    self._trust.learn(*choice, passed)
            for joined, passed in zip(self._joints, verified, strict=False):  # none where the model was not asked
                if joined is not None and passed is not None:
                    self._trust.learn_joint(joined, passed)
        self._choices, self._joints = [], []

    def keep(self, rows: Tensor) -> None:
        self._copier.keep(rows)
        self._model.keep(rows)

    def _wanted(self, known: Sequence[int]) -> list[int]:
        """Lengths of the copies to take, 0 where the model is asked although there is one."""
        trust, kinds = self._trust, self._copier.kinds()
        takes = [kind != GUESS if trust is None else trust.takes_copy(kind) for kind in kinds]
        self._joints = []
        self._choices = [
            (kind, taken) if copied > 0 else None for copied, kind, taken in zip(known, kinds, takes, strict=True)
        ]
        return [copied if taken else 0 for copied, taken in zip(known, takes, strict=True)]
