"""The tables that help_en_de_base reproduces."""

from experiments.common_tables import block_drafter, papers_drafter, targets
from experiments.measures import Score

OWN = {"papers_drafter": papers_drafter}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        block_drafter(
            results,
            Score("sacrebleu"),
            ours="sacrebleu of help paragraphs, trained for minutes; times of the first 64",
            differs="verifier and drafter 512 wide, 6+6 verifier layers, drafter of 2 with k = 10, transition head, "
            f"causal prefix, no teacher{targets(results, 'drafter')}",
            verifier="6+6 layers of 512, no teacher",
            teacher="",
        )
    ]
