"""Token repetition ratio: high if a model decodes positions independently of each other.

It is used in papers/001 Appendix B and Table 9, after Ghazvininejad et al. 2019 ("Mask-Predict"). Neither paper defines
it. Here a token is repeated if it equals the token right before it in the same sentence, and the ratio is over all
tokens of all sentences. It depends on the tokenisation: "New York-York" has no repeated word. Programs that count
subwords, or any second occurrence, give other numbers.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise


def repetition_ratio(outputs: Sequence[Sequence[Hashable]]) -> float:
    """Share of tokens that equal the token before them, 0 to 1; 0 without tokens.

    Args:
        outputs: tokens of each sentence.
    """
    repeated = sum(first == second for output in outputs for first, second in pairwise(output))
    return repeated / max(1, sum(map(len, outputs)))
