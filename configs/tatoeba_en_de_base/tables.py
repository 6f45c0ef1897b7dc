"""The tables that tatoeba_en_de_base reproduces."""

from experiments.common_tables import block_drafter
from experiments.measures import Score


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        block_drafter(
            results,
            Score("sacrebleu"),
            ours="sacrebleu of Tatoeba sentences",
            differs="verifier and drafter 512 wide, 6 verifier layers, drafter of 2 with k = 10, transition head, "
            "causal prefix, Tatoeba",
            verifier="6+6 layers of 512, Tatoeba",
        )
    ]
