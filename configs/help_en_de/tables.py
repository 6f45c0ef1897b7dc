"""The tables that help_en_de reproduces."""

from experiments.common_tables import block_sizes
from experiments.measures import Score

VERIFIER = "4+3 layers of 256"
DIFFERS = (
    f"verifier of {VERIFIER}; drafter of 2 layers of 256, transition head, causal prefix, "
    "no glancing, a short training"
)


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        block_sizes(
            results,
            Score("sacrebleu"),
            "ge2022/6",
            "AR (beam = 5)",
            "gad++-3-1-k{}",
            sizes=(5, 10, 15, 25),
            subset="test",
            further={"GAD++ (k = 5)": "GAD++ (k = 10)"},
            ours="sacrebleu of help paragraphs",
            differs=DIFFERS,
            but={
                "AR (beam = 5)": VERIFIER,
                "GAD++ (k = 5)": f"k, which is 10 in the paper's row; {DIFFERS}",
            },
        )
    ]
