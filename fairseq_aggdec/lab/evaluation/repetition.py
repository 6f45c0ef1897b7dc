"""Token repetition ratio, a sign that a model decodes positions independently of each other.

papers/001 Appendix B and Table 9, after Ghazvininejad et al. 2019 ("Mask-Predict"). Neither says which tokens count:
here a token is repeated if it equals the one right before it in the same sentence, and the ratio is over all tokens of
all sentences. What is a token decides: "New York-York" repeats nothing as words. Scores of other programs differ where
they count subwords or any second occurrence.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise


def repetition_ratio(outputs: Sequence[Sequence[Hashable]]) -> float:
    """Share of all tokens that repeat the token before them, 0 to 1; 0 for no tokens.

    Args:
        outputs: tokens of each sentence.
    """
    repeated = sum(first == second for output in outputs for first, second in pairwise(output))
    return repeated / max(1, sum(map(len, outputs)))
