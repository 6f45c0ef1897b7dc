"""Finds where two outputs that must be the same differ, and whether rounding explains it.

If two tokens have almost the same log-probability, rounding decides which one is the best, and it depends on the width
of the block in which they are computed. That is a near-tie. Every other difference is a fault of this plugin.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:  # reading records must not import PyTorch
    from torch import Tensor

NEAR_TIE = 1e-4
"""largest difference of log-probabilities (nats) that rounding in fp32 explains"""
NEAR_TIES = {"fp16": 0.1, "bf16": 0.5}
"""the same for models converted to other precisions: logits near 20 have steps of 0.016 in fp16 and 0.125 in bf16"""


def stock_computes(precision: str, device: str) -> bool:
    """Whether this precision converts the whole model on this device, so that fairseq's search can run it."""
    return precision in ("fp32", "fp16") or (precision == "bf16" and device != "cpu")


def kept_in(precision: str, device: str) -> str:
    """The precision of the model's weights: in the others the engine alone computes."""
    kept = "fp16" if precision == "exact" and device != "cpu" else precision
    return kept if stock_computes(kept, device) else "fp32"


def near_tie_of(precision: str, device: str) -> float:
    """The largest difference of log-probabilities in nats that rounding explains."""
    return NEAR_TIES.get(kept_in(precision, device), NEAR_TIE)


Gap = Callable[[int, Sequence[int], int, int], float]
"""id of the sentence, tokens before the difference, expected token, found token -> log-probability of the expected
token minus that of the found one"""

Decode = Callable[[dict[str, Any], "Tensor | None"], list[list[dict[str, Any]]]]
"""a batch and its forced tokens, None for those that its task forces -> hypotheses, as fairseq's generator has them"""


@dataclass(frozen=True)
class Difference:
    """The first difference between two outputs of a sentence."""

    sentence: int
    """id of the sentence"""
    position: int
    """position of the token, from 0"""
    expected: int
    """the reference's token"""
    found: int
    gap: float | None
    """log p(expected) - log p(found) by the reference, after the tokens that both outputs share; None if a rule of the
    search forbids one of them"""
    near_tie: bool
    """whether rounding explains it"""

    def describe(self, mode: str, reference: str, symbols: Sequence[str]) -> str:
        """One line; `symbols` are those of the target dictionary."""
        return (
            f"{mode}: sentence {self.sentence}, position {self.position}: {symbols[self.found]!r} where {reference} "
            f"has {symbols[self.expected]!r}; "
            + (
                "the search has no choice"
                if self.gap is None
                else f"log-probabilities differ by {self.gap:.6f}"
            )
            + (", a near-tie" if self.near_tie else "")
        )


def first_difference(expected: Sequence[object], found: Sequence[object]) -> int | None:
    """The position of the first token that differs; None for equal outputs. Both outputs end with EOS."""
    if list(expected) == list(found):
        return None
    return next(
        (
            place
            for place, (one, other) in enumerate(zip(expected, found, strict=False))
            if one != other
        ),
        min(len(expected), len(found)),
    )


def differences(
    expected: Mapping[int, Sequence[int]],
    found: Mapping[int, Sequence[int]],
    gap: Gap,
    near_tie: float = NEAR_TIE,
) -> list[Difference]:
    """The first difference of each sentence that has one.

    Args:
        expected: the reference's outputs by sentence id, EOS included.
        found: outputs of another mode.
        gap: called only for sentences that differ.
        near_tie: a smaller gap is a near-tie.

    Raises:
        ValueError: the outputs are of different sentences.
    """
    if expected.keys() != found.keys():
        raise ValueError(
            f"outputs are of different sentences: {sorted(expected.keys() ^ found.keys())[:5]}"
        )
    result = []
    for sentence, tokens in expected.items():
        place = first_difference(tokens, found[sentence])
        if place is None:
            continue
        wanted = tokens[place]
        other = found[sentence][place]
        apart = gap(sentence, tokens[:place], wanted, other)
        known = apart if math.isfinite(apart) else None
        result.append(
            Difference(sentence, place, wanted, other, known, abs(apart) < near_tie)
        )
    return result


def gap_of(decode: Decode, samples: Mapping[int, dict[str, Any]]) -> Gap:
    """Measure gaps by the reference: both tokens are forced as a prefix, and their scores compared.

    Args:
        decode: the reference: fairseq's search with a beam of one, or this plugin's `greedy`.
        samples: for each sentence, a batch of this sentence alone, padded as it was decoded.
    """
    import torch

    def log_prob(sentence: int, tokens: Sequence[int]) -> float:
        sample = samples[sentence]
        prefix = torch.tensor([tokens], device=sample["net_input"]["src_tokens"].device)
        with torch.no_grad():
            ((best, *_),) = decode(sample, prefix)
        if best["tokens"][: len(tokens)].tolist() != list(tokens):
            # a rule of the search, such as the length limit, forces another token
            return -math.inf
        return float(best["positional_scores"][len(tokens) - 1])

    def gap(
        sentence: int, beginning: Sequence[int], expected: int, found: int
    ) -> float:
        return log_prob(sentence, [*beginning, expected]) - log_prob(
            sentence, [*beginning, found]
        )

    return gap


def beam_gap_of(
    decode: Decode, samples: Mapping[int, dict[str, Any]], search: Any
) -> Gap:
    """Measure how near to each other two candidates of a beam search come anywhere in a sentence.

    The choice between two hypotheses at a near-tie changes all later steps of all hypotheses. So the answer is the same
    for all tokens of a sentence.

    Args:
        decode: fairseq's search, with the beam in question.
        samples: of each sentence, a batch of it alone, as it was decoded; where its length limit depends on others,
            their batch, of whose sentences the nearest candidates count.
        search: the `search` of fairseq's generator.
    """
    import torch

    def gap(sentence: int, *tokens: object) -> float:
        found = [math.inf]
        unchanged_step = search.step

        def step(*args: Any, **kwargs: Any) -> Any:
            best = unchanged_step(*args, **kwargs)
            # NaN between two scores of minus infinity
            apart = (best[0][:, :-1] - best[0][:, 1:]).flatten()
            found.extend(apart[apart.isfinite()].tolist())
            return best

        with torch.no_grad(), mock.patch.object(search, "step", step):
            lists = decode(samples[sentence], None)
        pairs = (pair for hypotheses in lists for pair in pairwise(hypotheses))
        apart = [float(one["score"]) - float(other["score"]) for one, other in pairs]
        return min([*found, *filter(math.isfinite, apart)])

    return gap
