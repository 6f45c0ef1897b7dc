"""Which drafted tokens the verifier accepts (papers/000 Eqs. 7 to 9): each position is judged by itself.

A drafted token stands against the verifier's own choice for the same position, made under the search rules after all
drafted tokens before it. What is accepted is the longest beginning of a draft in which every token passes.
"""

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


class Acceptance(Protocol):
    """A criterion; it may be given a block in slices."""

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
        own = proposed == choices.tokens
        drafted = choices.scores.gather(-1, proposed.clamp(min=0)[..., None])  # B x W x 1
        best = choices.scores.gather(-1, choices.tokens[..., None])  # B x W x 1
        within = (best - drafted <= self.tolerance) & (drafted > -torch.inf)
        better = (choices.scores > drafted).sum(dim=-1)  # B x W: how many tokens rank above
        tolerated = within.squeeze(-1) & (better < self.beta) & (proposed != NOTHING) & ~own
        if choices.forced is not None:
            tolerated &= ~choices.forced
        for token in self.strict:
            tolerated &= proposed != token
        tokens = torch.where(tolerated, proposed, choices.tokens)
        log_probs = torch.where(tolerated, drafted.squeeze(-1), choices.log_probs)
        return Verdict(own | tolerated, tokens, log_probs)


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
