"""Which drafted tokens the verifier accepts (papers/000 Eqs. 7 to 9, papers/004 §5).

A drafted token stands against the verifier's own choice for the same position, made under the search rules after all
drafted tokens before it: each position is judged by itself, but for `MinimumBlock`. What is accepted is the longest
beginning of a draft in which every token passes.

| criterion | passes | paper |
|---|---|---|
| `exact` | the verifier's own choice | 000 Eq. 7, 004 §3 |
| `TopBeta` | among the verifier's best few, within a tolerance | 000 Eqs. 8 and 9; without the tolerance 004 §5.1 |
| `WithinDistance` | close to the verifier's own choice, as numbers | 004 §5.2 |
| `MinimumBlock` | whatever passes a criterion, and the first few anyway | 004 §5.3 |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import Choices

NOTHING = -1
"""No drafted token at this position: never passes."""


class Verdict(NamedTuple):
    """What becomes output at every position of a block, should the output get that far."""

    passed: Tensor
    """B x W: whether the drafted token is good enough"""
    tokens: Tensor
    """B x W: the drafted token where it passed, the verifier's own elsewhere"""
    log_probs: Tensor
    """B x W: of `tokens`, by the verifier"""


def joined(verdicts: Sequence[Verdict], dim: int) -> Verdict:
    """The verdict on all parts of a block, which follow one another along a dimension."""
    if len(verdicts) == 1:
        return verdicts[0]
    return Verdict(*(torch.cat(entries, dim) for entries in zip(*verdicts, strict=True)))


class Acceptance(Protocol):
    """A criterion; it may be given a block in slices, in their order (but for `MinimumBlock`)."""

    def __call__(self, proposed: Tensor, choices: Choices) -> Verdict:
        """Judge drafted tokens.

        Args:
            proposed: the token drafted for each position, B x W; `NOTHING` where there is none.
            choices: the verifier's own, and its scores.
        """


def exact(proposed: Tensor, choices: Choices) -> Verdict:
    """A drafted token passes if the verifier would have chosen it itself (Eq. 7)."""
    return Verdict(proposed == choices.tokens, choices.tokens, choices.log_probs)


@dataclass(frozen=True)
class TopBeta:
    """GAD++: a drafted token passes among the verifier's best few, within a tolerance of its very best.

    Probabilities are those that the search compares: temperature and penalties applied, banned tokens at none. Where a
    rule forces a token, only that one passes.
    """

    beta: int
    """the drafted token ranks among this many (Eq. 8); equal scores share the better rank"""
    tolerance: float
    """the most by which its log-probability may fall short of the best one, nats, inclusive (Eq. 9)"""
    strict: tuple[int, ...] = ()
    """tokens that pass only as the verifier's own choice, such as EOS"""

    def __call__(self, proposed: Tensor, choices: Choices) -> Verdict:
        drafted = choices.scores.gather(-1, proposed.clamp(min=0)[..., None])  # B x W x 1
        best = choices.scores.gather(-1, choices.tokens[..., None])  # B x W x 1
        within = best - drafted <= self.tolerance  # not where both are minus infinity
        better = (choices.scores > drafted).sum(dim=-1)  # B x W: how many tokens rank above
        near = within.squeeze(-1) & (better < self.beta)
        return _passing(near, proposed, choices, self.strict)


@dataclass(frozen=True)
class WithinDistance:
    """A drafted token passes if its value differs little from that of the verifier's own choice (papers/004 §5.2).

    Search rules bind as for `TopBeta`.
    """

    distance: float
    """the largest difference that passes, inclusive"""
    values: Tensor
    """V, fp32: the value of each token, such as a pixel's intensity; NaN for tokens that are no numbers, which pass
    only as the verifier's own choice"""

    def __call__(self, proposed: Tensor, choices: Choices) -> Verdict:
        values = self.values.to(choices.tokens.device)
        near = (values[proposed.clamp(min=0)] - values[choices.tokens]).abs() <= self.distance  # never where one is NaN
        return _passing(near, proposed, choices)


@dataclass(frozen=True)
class MinimumBlock:
    """The first drafted tokens pass in any case, so that every iteration commits a minimum (papers/004 §5.3).

    Tokens after them pass only where all tokens before have passed the criterion. Search rules bind all the same: a
    drafted token that one of them bans does not pass, and the block is shorter.
    """

    least: int
    """tokens that an iteration commits, the verifier's own after them included; fewer where the sentence or the draft
    ends before"""
    criterion: Acceptance = exact
    strict: tuple[int, ...] = ()
    """see `TopBeta`"""

    def __call__(self, proposed: Tensor, choices: Choices) -> Verdict:
        judged = self.criterion(proposed, choices)
        unbroken = judged.passed.long().cumprod(dim=-1).bool()  # B x W
        first = (torch.arange(proposed.size(1), device=proposed.device) < self.least - 1).expand_as(proposed)
        anyway = _passing(first, proposed, choices, self.strict)
        passed = torch.where(first, anyway.passed, unbroken)
        tokens = torch.where(first, anyway.tokens, torch.where(unbroken, judged.tokens, choices.tokens))
        log_probs = torch.where(first, anyway.log_probs, torch.where(unbroken, judged.log_probs, choices.log_probs))
        return Verdict(passed, tokens, log_probs)


def _passing(near: Tensor, proposed: Tensor, choices: Choices, strict: Sequence[int] = ()) -> Verdict:
    """The verdict where besides the verifier's own choice what is `near` passes (B x W), if search rules allow it."""
    own = proposed == choices.tokens
    drafted = choices.scores.gather(-1, proposed.clamp(min=0)[..., None]).squeeze(-1)  # B x W
    tolerated = near & (drafted > -torch.inf) & (proposed != NOTHING) & ~own
    if choices.forced is not None:
        tolerated &= ~choices.forced
    for token in strict:
        tolerated &= proposed != token
    tokens = torch.where(tolerated, proposed, choices.tokens)
    return Verdict(own | tolerated, tokens, torch.where(tolerated, drafted, choices.log_probs))


def top_beta(beta: int, tolerance: float, eos: int | None = None) -> Acceptance:
    """The criterion of GAD++; with a beta of one or a tolerance of zero that of GAD.

    Args:
        beta: see `TopBeta`.
        tolerance: see `TopBeta`.
        eos: end of sentence, where it is to pass only as the verifier's own choice.
    """
    if beta == 1 or tolerance == 0:
        return exact
    return TopBeta(beta, tolerance, () if eos is None else (eos,))


def accepted_beginning(passed: Tensor) -> Tensor:
    """How many drafted tokens are accepted: those before the first that did not pass, ... x W -> ..."""
    return passed.long().cumprod(dim=-1).sum(dim=-1)
