"""GLEU, the metric of fluency-oriented grammatical error correction (Napoles et al. 2015, "Ground truth for grammatical
error correction metrics", in the revised form of Napoles et al. 2016, "GLEU without tuning").

For n = 1..4, over a corpus with source S, hypothesis H and reference R:

    p_n = sum over sentences of max(0, sum over g of H of  min(H(g), R(g)) - [g not in R] min(H(g), S(g)))
          -------------------------------------------------------------------------------------------------
                                        number of n-grams in H

    GLEU = BP * exp(1/4 * sum log p_n),   BP = 1 if |H| > |R| else exp(1 - |R| / |H|)

The subtracted term counts the n-grams that the hypothesis keeps from the source although the reference lacks them:
errors that were not corrected. The authors' tool clips at zero for each sentence, as here.

With several references, one reference is drawn for each sentence and the corpus is scored; the result is the mean of
500 such scores. The draws are those of JFLEG's `gleu.py` under Python 3 (docs/metrics.md).
"""

import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

MAX_ORDER = 4
_DRAWS = 500  # of a reference for each sentence, where there are several


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the n-grams of `order` tokens in a token sequence."""
    return Counter(
        tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1)
    )


def sentence_statistics(
    source: Sequence[str], hypothesis: Sequence[str], reference: Sequence[str]
) -> list[int]:
    """Counts of one tokenised hypothesis against one reference; those of a corpus are their sum.

    Returns:
        |H|, |R|, the numerators of p_1 to p_4, and their denominators.
    """
    matches = []
    totals = []
    for order in range(1, MAX_ORDER + 1):
        kept, found, wanted = (
            ngrams(tokens, order) for tokens in (source, hypothesis, reference)
        )
        # n-grams of the reference, less those that should have been corrected
        wrong = found & Counter({g: n for g, n in kept.items() if g not in wanted})
        matches.append(max(0, (found & wanted).total() - wrong.total()))
        totals.append(found.total())
    return [len(hypothesis), len(reference), *matches, *totals]


def _score(statistics: Sequence[int]) -> float:
    """GLEU, 0 to 1; 0 if for some order no n-gram matches or sentences are too short to have one."""
    hypothesis_length, reference_length, *counts = statistics
    matches = counts[:MAX_ORDER]
    totals = counts[MAX_ORDER:]
    if 0 in matches or not reference_length:
        return 0.0
    logs = [math.log(m / total) for m, total in zip(matches, totals, strict=True)]
    brevity = min(0.0, 1.0 - reference_length / hypothesis_length)
    return math.exp(brevity + sum(logs) / MAX_ORDER)


def corpus_gleu(
    sources: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
) -> float:
    """Return the corpus GLEU in 0..1.

    Args:
        sources: tokenised source sentences.
        hypotheses: tokenised outputs, one per source.
        references: sets of references; each set holds one tokenised reference per source.
    """
    # sentences x references x counts
    table = np.array(
        [
            [sentence_statistics(source, output, choice) for choice in choices]
            for source, output, *choices in zip(
                sources, hypotheses, *references, strict=True
            )
        ]
    )
    scores = []
    for draw in range(_DRAWS if len(references) > 1 else 1):
        generator = random.Random(101 * draw)
        drawn = [generator.randrange(len(references)) for _ in sources]
        scores.append(_score(table[range(len(sources)), drawn].sum(axis=0).tolist()))
    return sum(scores) / len(scores)
