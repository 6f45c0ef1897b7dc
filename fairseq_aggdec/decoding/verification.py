"""Which draft tokens pass (papers/000 Eqs. 5 to 9, papers/004 §5).

One pass of the verifier reads a block. Each draft token is compared with the verifier's own choice at the same
position, made under the search rules after all draft tokens before it. The longest prefix of a draft in which every
token passes is accepted.

| criterion | passes | paper |
|---|---|---|
| `EXACT` | the verifier's own choice | 000 Eq. 7, 004 §3 |
| `TopBeta` | among the verifier's best few, within a tolerance | 000 Eqs. 8 and 9; without the tolerance 004 §5.1 |
| `WithinDistance` | close to the verifier's own choice, as numbers | 004 §5.2 |
| `Acceptance.minimum` | the first tokens of a block, whatever the criterion | 004 §5.3 |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block, Draft, Verifier
from fairseq_aggdec.decoding.search_rules import Choices, SearchRules

NO_DRAFT = -1
"""stands for a draft token where there is none; never passes"""


class Criterion(Protocol):
    """Decides which draft tokens pass besides the verifier's own choices."""

    @property
    def ranks(self) -> int:
        """The number of highest scores that the criterion reads."""

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        """Judge draft tokens.

        Args:
            proposed: the draft token at each position, N, or `NO_DRAFT`.
            drafted: the scores of the draft tokens, N; undefined at `NO_DRAFT`.
            choices: the verifier's own, with at least `ranks` highest scores.

        Returns:
            N booleans; undefined at the verifier's own choices, at banned tokens and at `NO_DRAFT`.
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

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        within = choices.log_probs - drafted <= self.tolerance  # not where both are minus infinity
        return within if self.beta is None else within & (drafted >= choices.highest[:, self.beta - 1])


@dataclass(frozen=True)
class WithinDistance:
    """A draft token passes if its value is close to the value of the verifier's own choice (papers/004 §5.2)."""

    distance: float
    """the largest difference that passes, inclusive"""
    values: Tensor
    """V, fp32: the value of each token, such as a pixel's intensity; NaN for tokens that are no numbers, which never
    pass by distance"""

    @property
    def ranks(self) -> int:
        return 1

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        values = self.values.to(choices.tokens.device)
        return (values[proposed.clamp(min=0)] - values[choices.tokens]).abs() <= self.distance  # never where one is NaN


@dataclass(frozen=True)
class Acceptance:
    """Decides which draft tokens pass: the verifier's own choices, and others where no search rule forces the token."""

    criterion: Criterion | None = None
    """passes other tokens; None: none"""
    minimum: int = 1
    """least number of tokens that an iteration commits, the verifier's own included (papers/004 §5.3): the first
    `minimum` - 1 draft tokens pass in any case. Fewer where the sentence or the draft ends before, or a search rule
    bans a token"""

    @property
    def is_exact(self) -> bool:
        """Whether only the verifier's own choices pass."""
        return self.criterion is None and self.minimum <= 1

    @property
    def ranks(self) -> int:
        """The number of highest scores needed to judge a token."""
        return 1 if self.criterion is None else self.criterion.ranks

    def by_token(self, proposed: Tensor, choices: Choices) -> tuple[Tensor, ...]:
        """Judge N tokens, each by itself; the result is the input of `by_block`, N each. See `Criterion`."""
        own = proposed == choices.tokens
        drafted = choices.score_of(proposed.clamp(min=0))
        allowed = (drafted > -torch.inf) & (proposed != NO_DRAFT) & ~own
        if choices.forced is not None:
            allowed &= ~choices.forced
        near = torch.zeros_like(own) if self.criterion is None else allowed & self.criterion(proposed, drafted, choices)
        return own, near, allowed, proposed, drafted, choices.tokens, choices.log_probs

    def by_block(self, own: Tensor, *judged: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Judge a block from the results of `by_token`, B x W each: passed, output tokens, log-probabilities."""
        near, allowed, proposed, drafted, tokens, log_probs = judged
        if self.minimum > 1:
            unbroken = (own | near).long().cumprod(dim=-1).bool()
            first = torch.arange(own.size(1), device=own.device) < self.minimum - 1
            own, near = own & (first | unbroken), torch.where(first, allowed, near & unbroken)
        return own | near, torch.where(near, proposed, tokens), torch.where(near, drafted, log_probs)


EXACT = Acceptance()
"""A draft token passes if the verifier would have chosen it itself (Eq. 7)."""


def accepted_prefix_length(passed: Tensor) -> Tensor:
    """The number of draft tokens before the first that did not pass, ... x W -> ..."""
    return passed.long().cumprod(dim=-1).sum(dim=-1)


class Verdict(NamedTuple):
    """The judgement of a block's N entries, on the host."""

    widths: Sequence[int]
    """number of entries of each row"""
    passed: Sequence[bool]
    """whether the draft token behind the entry passes; False at the end of a draft"""
    tokens: Sequence[int]
    """the token to commit: the draft token where it passed, else the verifier's own"""
    log_probs: Sequence[float]
    """the verifier's log-probabilities of `tokens`"""

    @classmethod
    def of(cls, widths: Sequence[int], passed: Tensor, tokens: Tensor, log_probs: Tensor) -> "Verdict":
        """A verdict from tensors of N on the verifier's device."""
        passes, chosen, scores = _on_host(passed, tokens, log_probs)
        return cls(widths, list(map(bool, passes)), list(map(int, chosen)), scores)

    @classmethod
    def exact(cls, block: Block, draft: Draft, tokens: Tensor, log_probs: Tensor) -> "Verdict":
        """The verdict under `EXACT`, from the verifier's own choices and their log-probabilities, N each."""
        ragged = block.ragged
        unknown = [draft.lengths] if draft.known is None else []
        own, read, scores, *lengths = _on_host(tokens, ragged.pack(block.tokens), log_probs, *unknown)
        passed: list[bool] = []
        for width, length in zip(ragged.widths, draft.known or map(int, lengths[0]), strict=True):
            first, end = len(passed), len(passed) + length
            passed += [*map(eq, own[first:end], read[first + 1 : end + 1]), *[False] * (width - length)]
        return cls(ragged.widths, passed, list(map(int, own)), scores)


def _on_host(*entries: Tensor) -> list[list[float]]:
    """Copy vectors to the host as lists; from a GPU in one transfer."""
    if entries[0].device.type == "cpu":
        return [entry.tolist() for entry in entries]
    return _in_one_transfer(*entries)


def _in_one_transfer(*entries: Tensor) -> list[list[float]]:
    """Copy vectors to the host, one after the other in fp32, which holds tokens below 2^24 exactly."""
    numbers = iter(torch.cat(entries).tolist())
    return [list(islice(numbers, len(entry))) for entry in entries]


def judge(
    verifier: Verifier, rules: SearchRules, accept: Acceptance, block: Block, draft: Draft, sequence: Tensor | None
) -> Verdict:
    """Read a block in one pass and judge its draft.

    `sequence`: the decoder's inputs up to the end of the block, B x L, for the n-gram rule; None without that rule.
    """
    ragged, positions = block.ragged, block.positions
    proposed = None if accept.is_exact else _proposed(block, draft)
    judged: list[tuple[Tensor, ...]] = []
    first = 0
    for scores in verifier.score(block):  # n x V
        part = slice(first, first + scores.size(0))
        first = part.stop
        rows = ragged.rows[part]
        seen = None if sequence is None else sequence[rows]
        choices = rules.keep(rows).choose(
            scores,
            positions[part],
            seen,
            block.first_start,
            block.last_start + ragged.width - 1,
            accept.ranks,
        )
        if proposed is None:
            judged.append((choices.tokens, choices.log_probs))
        else:
            judged.append(accept.by_token(proposed[part], choices))
    by_token = judged[0] if len(judged) == 1 else tuple(torch.cat(entries) for entries in zip(*judged, strict=True))
    if proposed is None:
        return Verdict.exact(block, draft, *by_token)
    # `spread` repeats a row's last entry, behind which nothing was drafted
    spread = accept.by_block(*(ragged.spread(entries) for entries in by_token))
    return Verdict.of(ragged.widths, *map(ragged.pack, spread))


def _proposed(block: Block, draft: Draft) -> Tensor:
    """The draft token behind each entry of a block, N, or `NO_DRAFT`."""
    ragged = block.ragged
    proposed = ragged.pack(F.pad(block.tokens[:, 1:], (0, 1), value=NO_DRAFT))
    if draft.known is None or not ragged.is_full:  # otherwise a row's tokens end with the block
        proposed = proposed.masked_fill(ragged.columns >= draft.lengths[ragged.rows], NO_DRAFT)
    return proposed
