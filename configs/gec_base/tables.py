"""The table that gec_base reproduces."""

from experiments.common_tables import REFERENCE_EDITS, correctors, edits, three_modes

METRICS = ["m2-references"]


def papers(results):
    """Tables of the papers with this experiment's numbers; `test2` is JFLEG's test set."""
    return [
        correctors(
            "ge2022/1",
            results.at(set="test2"),
            edits(*REFERENCE_EDITS),
            ours="JFLEG's test set, edits against its four references; times of its first 64 sentences",
            differs="6+6 layers of 512, synthetic data alone, trained for minutes",
            **three_modes("with synthetic data"),
        )
    ]
