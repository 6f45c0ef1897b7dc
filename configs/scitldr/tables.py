"""The tables that scitldr reproduces."""

from experiments.common_tables import summaries


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        summaries(
            results,
            differs="verifier of 4+3 layers of 256, not BART; drafter with k = 10, 2 layers of 256, transition head, "
            "causal prefix, no glancing",
            verifier="4+3 layers of 256, not BART",
        )
    ]
