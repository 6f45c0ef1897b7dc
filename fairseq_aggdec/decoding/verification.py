"""Which draft tokens pass (papers/000 Eqs. 5 to 9, papers/004 §5).

One pass of the verifier reads a block. A draft token stands against the verifier's own choice for the same position,
made under the search rules after all draft tokens before it: each is judged by itself. What is accepted is the longest
beginning of a draft in which every token passes.

| criterion | passes | paper |
|---|---|---|
| `EXACT` | the verifier's own choice | 000 Eq. 7, 004 §3 |
| `TopBeta` | among the verifier's best few, within a tolerance | 000 Eqs. 8 and 9; without the tolerance 004 §5.1 |
| `WithinDistance` | close to the verifier's own choice, as numbers | 004 §5.2 |
| `Acceptance.minimum` | the first few of a block, whatever the criterion | 004 §5.3 |
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

NOTHING = -1
"""No draft token at this position: never passes."""


class Criterion(Protocol):
    """What passes besides the verifier's own choice, if search rules allow it."""

    @property
    def ranks(self) -> int:
        """How many of the highest scores it looks at."""

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        """Judge draft tokens.

        Args:
            proposed: the token drafted for each position, N; `NOTHING` where there is none.
            drafted: their scores, N; anything where there is none.
            choices: the verifier's own, and at least its `ranks` highest scores.

        Returns:
            N booleans; any where a token is the verifier's own choice, is banned, or there is none.
        """


@dataclass(frozen=True)
class TopBeta:
    """GAD++: a draft token passes among the verifier's best few, within a tolerance of its very best.

    Probabilities are those that the search compares: temperature and penalties applied, banned tokens at none.
    """

    beta: int | None
    """the draft token ranks among this many, fewer than there are tokens (Eq. 8); equal scores share the better rank;
    None: any may pass"""
    tolerance: float
    """the most by which its log-probability may fall short of the best one, nats, inclusive (Eq. 9)"""

    @property
    def ranks(self) -> int:
        return self.beta or 1

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        within = choices.log_probs - drafted <= self.tolerance  # not where both are minus infinity
        return within if self.beta is None else within & (drafted >= choices.highest[:, self.beta - 1])


@dataclass(frozen=True)
class WithinDistance:
    """A draft token passes if its value differs little from that of the verifier's own choice (papers/004 §5.2)."""

    distance: float
    """the largest difference that passes, inclusive"""
    values: Tensor
    """V, fp32: the value of each token, such as a pixel's intensity; NaN for tokens that are no numbers, which pass
    only as the verifier's own choice"""

    @property
    def ranks(self) -> int:
        return 1

    def __call__(self, proposed: Tensor, drafted: Tensor, choices: Choices) -> Tensor:
        values = self.values.to(choices.tokens.device)
        return (values[proposed.clamp(min=0)] - values[choices.tokens]).abs() <= self.distance  # never where one is NaN


@dataclass(frozen=True)
class Acceptance:
    """Which draft tokens pass: the verifier's own choices always; never where search rules leave no other choice."""

    criterion: Criterion | None = None
    """what passes besides"""
    minimum: int = 1
    """tokens that an iteration commits, the verifier's own after them included (papers/004 §5.3): so many draft tokens
    less one pass in any case, those after them only where all before have passed the criterion. Fewer where the
    sentence or the draft ends before, or a search rule bans a token"""

    @property
    def is_exact(self) -> bool:
        """Whether nothing but the verifier's own choice passes."""
        return self.criterion is None and self.minimum <= 1

    @property
    def ranks(self) -> int:
        """How many of the verifier's highest scores have to be found to judge a token."""
        return 1 if self.criterion is None else self.criterion.ranks

    def by_token(self, proposed: Tensor, choices: Choices) -> tuple[Tensor, ...]:
        """What `by_block` needs of some tokens, each judged by itself, N each; see `Criterion`."""
        own = proposed == choices.tokens
        drafted = choices.score_of(proposed.clamp(min=0))
        allowed = (drafted > -torch.inf) & (proposed != NOTHING) & ~own
        if choices.forced is not None:
            allowed &= ~choices.forced
        near = torch.zeros_like(own) if self.criterion is None else allowed & self.criterion(proposed, drafted, choices)
        return own, near, allowed, proposed, drafted, choices.tokens, choices.log_probs

    def by_block(self, own: Tensor, *judged: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What passes of a block, what becomes output and its log-probability: B x W each, from `by_token`'s, B x W."""
        near, allowed, proposed, drafted, tokens, log_probs = judged
        if self.minimum > 1:
            unbroken = (own | near).long().cumprod(dim=-1).bool()
            first = torch.arange(own.size(1), device=own.device) < self.minimum - 1
            own, near = own & (first | unbroken), torch.where(first, allowed, near & unbroken)
        return own | near, torch.where(near, proposed, tokens), torch.where(near, drafted, log_probs)


EXACT = Acceptance()
"""A draft token passes if the verifier would have chosen it itself (Eq. 7)."""


def accepted_prefix_length(passed: Tensor) -> Tensor:
    """How many draft tokens are accepted: those before the first that did not pass, ... x W -> ..."""
    return passed.long().cumprod(dim=-1).sum(dim=-1)


class Verdict(NamedTuple):
    """What becomes output at every entry of a block, should the output get that far; N each, on the host."""

    widths: Sequence[int]
    """how many entries each row has"""
    passed: Sequence[bool]
    """whether the draft token behind the entry passes; at the end of a draft there is none"""
    tokens: Sequence[int]
    """the draft token where it passed, the verifier's own elsewhere"""
    log_probs: Sequence[float]
    """of `tokens`, by the verifier"""

    @classmethod
    def of(cls, widths: Sequence[int], passed: Tensor, tokens: Tensor, log_probs: Tensor) -> "Verdict":
        """Of N each, on the verifier's device."""
        passes, chosen, scores = _on_host(passed, tokens, log_probs)
        return cls(widths, list(map(bool, passes)), list(map(int, chosen)), scores)

    @classmethod
    def exact(cls, block: Block, draft: Draft, tokens: Tensor, log_probs: Tensor) -> "Verdict":
        """What becomes output under `EXACT`: the verifier's own choices, N, and their log-probabilities.

        A draft token passes where it is the choice for its place.
        """
        ragged = block.ragged
        unknown = [draft.lengths] if draft.known is None else []
        own, read, scores, *lengths = _on_host(tokens, ragged.pack(block.tokens), log_probs, *unknown)
        passed: list[bool] = []
        for width, length in zip(ragged.widths, draft.known or map(int, lengths[0]), strict=True):
            first, end = len(passed), len(passed) + length
            passed += [*map(eq, own[first:end], read[first + 1 : end + 1]), *[False] * (width - length)]
        return cls(ragged.widths, passed, list(map(int, own)), scores)


def _on_host(*entries: Tensor) -> list[list[float]]:
    """The numbers of some vectors."""
    if entries[0].device.type == "cpu":
        return [entry.tolist() for entry in entries]
    return _in_one_transfer(*entries)


def _in_one_transfer(*entries: Tensor) -> list[list[float]]:
    """The same from a GPU, which is waited for: in fp32, which holds tokens below 2^24 exactly."""
    numbers = iter(torch.cat(entries).tolist())
    return [list(islice(numbers, len(entry))) for entry in entries]


def judge(
    verifier: Verifier, rules: SearchRules, accept: Acceptance, block: Block, draft: Draft, sequence: Tensor | None
) -> Verdict:
    """Read a block in one pass and judge its draft.

    Behind a row's first draft token that did not pass, nothing of this is used. `sequence` has the decoder's inputs up
    to the block's end, B x L, for rules that look back; None where none does.
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
    # behind a row's tokens its last one is repeated, behind which nothing was drafted
    spread = accept.by_block(*(ragged.spread(entries) for entries in by_token))
    return Verdict.of(ragged.widths, *map(ragged.pack, spread))


def _proposed(block: Block, draft: Draft) -> Tensor:
    """The token that was drafted behind each entry of a block, N; `NOTHING` where there is none."""
    ragged = block.ragged
    proposed = ragged.pack(F.pad(block.tokens[:, 1:], (0, 1), value=NOTHING))
    if draft.known is None or not ragged.is_full:  # otherwise a row's tokens end with the block
        proposed = proposed.masked_fill(ragged.columns >= draft.lengths[ragged.rows], NOTHING)
    return proposed
