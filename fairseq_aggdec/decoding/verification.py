"""Which draft tokens pass (papers/000 Eqs. 5 to 9, papers/004 §5).

One pass of the verifier reads a block. Each draft token is compared with the verifier's choice at the same
position, made under the search rules after all draft tokens before it. The longest prefix of a draft in which every
token passes is accepted.

| criterion | passes | paper |
|---|---|---|
| `EXACT` | the verifier's choice | 000 Eq. 7, 004 §3 |
| `TopBeta` | among the verifier's best tokens, within a tolerance | 000 Eqs. 8 and 9; without the tolerance 004 §5.1 |
| `WithinDistance` | close to the verifier's choice, by their values | 004 §5.2 |
| `Acceptance.minimum` | the first tokens of a block, whatever the criterion | 004 §5.3 |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.tokens import NO_DRAFT, Block, Chosen, Draft, Ragged


class Criterion(Protocol):
    """Decides which draft tokens pass besides the verifier's choices."""

    @property
    def ranks(self) -> int:
        """The largest rank that the criterion tells from higher ones, at least 1."""

    def __call__(
        self, proposed: Tensor, tokens: Tensor, gap_to_best: Tensor, ranks: Tensor
    ) -> Tensor:
        """Judge draft tokens.

        Args:
            proposed: the draft token at each position, ..., or `NO_DRAFT`.
            tokens: the verifier's choices, ...
            gap_to_best: the log-probability of `tokens` less that of `proposed`, ...; undefined at `NO_DRAFT`.
            ranks: see `Chosen.ranks`, ...

        Returns:
            booleans, ...; undefined at the verifier's choices, at banned tokens and at `NO_DRAFT`.
        """


@dataclass(frozen=True)
class TopBeta:
    """GAD++: a draft token passes among the verifier's top-beta tokens, within a tolerance of the best.

    Probabilities are those of the search: divided by the temperature, penalties taken off, banned tokens at zero.
    """

    beta: int | None
    """highest rank that passes, below V (Eq. 8); equal scores share the better rank; None: no limit"""
    tolerance: float
    """largest difference in log-probability to the best token that passes, nats, inclusive (Eq. 9)"""

    @property
    def ranks(self) -> int:
        return self.beta or 1

    def __call__(
        self, proposed: Tensor, tokens: Tensor, gap_to_best: Tensor, ranks: Tensor
    ) -> Tensor:
        # not where both log-probabilities are minus infinity
        within = gap_to_best <= self.tolerance
        return within if self.beta is None else within & (ranks < self.beta)


@dataclass(frozen=True)
class WithinDistance:
    """A draft token passes if its value is close to the value of the verifier's choice (papers/004 §5.2)."""

    distance: float
    """the largest difference that passes, inclusive"""
    values: Tensor
    """V, fp32, on the host: the value of each token, such as a pixel's intensity; NaN for tokens without a value,
    which never pass by distance"""

    @property
    def ranks(self) -> int:
        return 1

    def __call__(
        self, proposed: Tensor, tokens: Tensor, gap_to_best: Tensor, ranks: Tensor
    ) -> Tensor:
        values = self.values
        # never where one is NaN
        return (values[proposed.clamp(min=0)] - values[tokens]).abs() <= self.distance


@dataclass(frozen=True)
class Acceptance:
    """Decides which draft tokens pass: the verifier's choices, and others where no search rule forces the token."""

    criterion: Criterion | None = None
    """passes other tokens; None: none"""
    minimum: int = 1
    """the fewest tokens that an iteration commits, the verifier's included (papers/004 §5.3): the first
    `minimum` - 1 draft tokens pass in any case. Fewer where the sentence or the draft ends before, or a search rule
    bans a token"""

    @property
    def is_exact(self) -> bool:
        """Whether only the verifier's choices pass."""
        return self.criterion is None and self.minimum <= 1

    @property
    def ranks(self) -> int:
        """The largest rank that matters to the criterion; 0 where only the verifier's choices pass."""
        if self.is_exact:
            return 0
        return 1 if self.criterion is None else self.criterion.ranks

    def judge(self, proposed: Tensor, chosen: Chosen) -> tuple[Tensor, Tensor, Tensor]:
        """Judge a block by its drafts, B x W tokens or `NO_DRAFT`, and by a verifier's choices, B x W each.

        Returns:
            passed, tokens to commit, their log-probabilities, B x W each.
        """
        tokens = chosen.tokens
        log_probs = chosen.log_probs
        drafted = chosen.drafted
        ranks = chosen.ranks
        assert drafted is not None
        assert ranks is not None

        # tokens that the verifier would have chosen, and those that the criterion lets pass
        equal = proposed == tokens
        allowed = (drafted > -torch.inf) & (proposed != NO_DRAFT) & ~equal
        near = torch.zeros_like(equal)
        if self.criterion is not None:
            near = allowed & self.criterion(
                proposed, tokens, log_probs - drafted, ranks
            )

        # the first tokens pass in any case; after them only those before which all passed
        if self.minimum > 1:
            unbroken = (equal | near).long().cumprod(dim=-1).bool()
            first = torch.arange(equal.size(1)) < self.minimum - 1
            equal &= first | unbroken
            near = torch.where(first, allowed, near & unbroken)
        return (
            equal | near,
            torch.where(near, proposed, tokens),
            torch.where(near, drafted, log_probs),
        )


EXACT = Acceptance()
"""A draft token passes if the verifier would have chosen it itself (Eq. 7)."""


def accepted_prefix_length(passed: Tensor) -> Tensor:
    """How many draft tokens there are before the first that did not pass, ... x W -> ..."""
    return passed.long().cumprod(dim=-1).sum(dim=-1)


class Verdict(NamedTuple):
    """The judgement of a block's N entries."""

    widths: Sequence[int]
    """entries of each row"""
    drafted: list[int]
    """draft tokens of each row"""
    passed: Sequence[bool]
    """whether the draft token after the entry passes; False at the end of a draft"""
    tokens: Sequence[int]
    """the token to commit: the draft token where it passed, else the verifier's"""
    log_probs: Sequence[float]
    """the verifier's log-probabilities of `tokens`"""


def judge(chosen: Chosen, accept: Acceptance, block: Block, draft: Draft) -> Verdict:
    """Judge the drafts of a block by the verifier's choices."""
    ragged = block.ragged
    if not accept.is_exact:
        return _judged(chosen, accept, ragged, draft)
    tokens = chosen.tokens.tolist()
    read = chosen.read.tolist()
    lengths = draft.lengths
    if lengths is None:  # then the block is full
        lengths = draft.lengths_of(
            [
                read[first + 1 : first + ragged.width]
                for first in range(0, len(read), ragged.width)
            ]
        )
    passed: list[bool] = []
    for width, length in zip(ragged.widths, lengths, strict=True):
        first = len(passed)
        end = first + length
        passed += [
            *map(eq, tokens[first:end], read[first + 1 : end + 1]),
            *[False] * (width - length),
        ]
    return Verdict(ragged.widths, lengths, passed, tokens, chosen.log_probs.tolist())


def _judged(
    chosen: Chosen, accept: Acceptance, ragged: Ragged, draft: Draft
) -> Verdict:
    """`judge` by a criterion or with a minimum."""
    # `chosen` is on the host, the block may be elsewhere
    ragged = Ragged.of(ragged.widths, chosen.read.device)
    # `spread` repeats a row's last entry, after which nothing was drafted
    spread = Chosen._make(
        None if part is None else ragged.spread(part) for part in chosen
    )
    lengths = draft.lengths_of(spread.read[:, 1:].tolist())
    proposed = F.pad(spread.read[:, 1:], (0, 1), value=NO_DRAFT)
    proposed = proposed.masked_fill(
        torch.arange(ragged.width) >= torch.tensor(lengths)[:, None], NO_DRAFT
    )
    passed, tokens, log_probs = (
        ragged.pack(part).tolist() for part in accept.judge(proposed, spread)
    )
    return Verdict(ragged.widths, lengths, passed, tokens, log_probs)
