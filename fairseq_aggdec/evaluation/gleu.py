"""GLEU, the metric of fluency-oriented grammatical error correction (Napoles et al. 2015, "Ground truth for grammatical
error correction metrics", in the revised form of Napoles et al. 2016, "GLEU without tuning").

For n = 1..4, over a corpus with source S, hypothesis H and reference R:

    p_n = sum over sentences of max(0, sum over g of H of  min(H(g), R(g)) - [g not in R] min(H(g), S(g)))
          -------------------------------------------------------------------------------------------------
                                        number of n-grams in H

    GLEU = BP * exp(1/4 * sum log p_n),   BP = 1 if |H| > |R| else exp(1 - |R| / |H|)

The subtracted term counts the n-grams that the hypothesis kept from the source although the reference has none of them:
errors left uncorrected. The clipping at zero per sentence is that of the authors' own tool.

With several references one is drawn per sentence and the corpus score is taken; this is repeated and averaged. The
official tool does it 500 times with Python's random numbers of its own seed, so the last digits differ from it (its
standard deviation over draws is about 0.3 points on JFLEG, that of the mean 0.01).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairseq_aggdec.errors import AggdecError

MAX_ORDER = 4


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Counts the n-grams of length `order` in a token sequence."""
    return Counter(tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1))


@dataclass
class GleuStatistics:
    """Sufficient statistics of one sentence against one reference, or of a corpus: they add up.

    Attributes:
        hypothesis_length: tokens of the hypothesis.
        reference_length: tokens of the reference.
        matches: numerator of p_n for n = 1..4.
        totals: denominator of p_n for n = 1..4.
    """

    hypothesis_length: int
    reference_length: int
    matches: list[int]
    totals: list[int]

    def add(self, other: GleuStatistics) -> None:
        """Adds another sentence's statistics to these."""
        self.hypothesis_length += other.hypothesis_length
        self.reference_length += other.reference_length
        self.matches = [mine + theirs for mine, theirs in zip(self.matches, other.matches, strict=True)]
        self.totals = [mine + theirs for mine, theirs in zip(self.totals, other.totals, strict=True)]

    def score(self) -> float:
        """Returns GLEU in 0..1; 0 if no n-gram of some order matches."""
        # Sentences shorter than four tokens have no 4-grams: orders that cannot occur are left out.
        orders = [(match, total) for match, total in zip(self.matches, self.totals, strict=True) if total]
        if not orders or any(match == 0 for match, _ in orders):
            return 0.0
        log_precision = sum(math.log(match / total) for match, total in orders) / len(orders)
        brevity = min(0.0, 1.0 - self.reference_length / self.hypothesis_length)
        return math.exp(brevity + log_precision)


def sentence_statistics(source: Sequence[str], hypothesis: Sequence[str], reference: Sequence[str]) -> GleuStatistics:
    """Returns the statistics of one tokenised hypothesis against one reference."""
    matches, totals = [], []
    for order in range(1, MAX_ORDER + 1):
        kept = ngrams(source, order)
        wanted = ngrams(reference, order)
        found = ngrams(hypothesis, order)
        match = 0
        for gram, count in found.items():
            match += min(count, wanted[gram]) if gram in wanted else -min(count, kept[gram])
        matches.append(max(0, match))
        totals.append(max(0, len(hypothesis) - order + 1))
    return GleuStatistics(len(hypothesis), len(reference), matches, totals)


def corpus_gleu(
    sources: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    draws: int = 500,
    seed: int = 1,
) -> float:
    """Returns the corpus GLEU in 0..1.

    Args:
        sources: tokenised source sentences.
        hypotheses: tokenised outputs, one per source.
        references: sets of references; each set holds one tokenised reference per source.
        draws: with more than one set, the number of random choices of one reference per sentence that are averaged.
        seed: of those choices.

    Raises:
        AggdecError: the numbers of sentences differ, or there is nothing to score.
    """
    lengths = {len(sources), len(hypotheses), *map(len, references)}
    if len(lengths) != 1 or not references or not sources:
        raise AggdecError(
            f"GLEU needs as many hypotheses and references as sources, at least one: {len(sources)} sources, "
            f"{len(hypotheses)} hypotheses, references {[len(part) for part in references]}"
        )
    statistics = [
        [sentence_statistics(source, hypothesis, reference) for reference in choices]
        for source, hypothesis, choices in zip(sources, hypotheses, zip(*references, strict=True), strict=True)
    ]
    generator = random.Random(seed)
    rounds = draws if len(references) > 1 else 1
    scores = []
    for _ in range(rounds):
        corpus = GleuStatistics(0, 0, [0] * MAX_ORDER, [0] * MAX_ORDER)
        for choices in statistics:
            corpus.add(choices[generator.randrange(len(choices))] if rounds > 1 else choices[0])
        scores.append(corpus.score())
    return sum(scores) / len(scores)
