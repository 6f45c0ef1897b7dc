"""The tables that tatoeba_de_en reproduces."""

from experiments.common_tables import (
    block_drafter,
    blockwise_table,
    drafter_ablation,
    papers_drafter,
    quality,
)
from experiments.measures import Score

OWN = {
    "quality": quality,
    "ablation": drafter_ablation,
    "papers_drafter": papers_drafter,
    "blockwise_table": blockwise_table,
}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        block_drafter(
            results,
            Score("sacrebleu"),
            column="DE-EN",
            ours="sacrebleu of Tatoeba sentences",
            differs="verifier of 4+3 layers of 256; drafter with k = 10, 2 layers of 256, transition head, causal "
            "prefix, no glancing",
            verifier="4+3 layers of 256",
        )
    ]
