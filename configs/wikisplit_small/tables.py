"""The tables that wikisplit_small reproduces."""

from experiments.common_tables import correctors, three_modes
from experiments.measures import Score, speed_up


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    columns = {
        "Wikilarge SARI": Score("SARI"),
        "Wikilarge BLEU": Score("sacrebleu"),
        "Wikilarge Speedup": speed_up,
    }
    return [
        correctors(
            "ge2022/4",
            results.at(set="test1", record="bench/bench-test1"),
            columns,
            ours="ASSET's test set",
            differs="4+1 layers of 256, WikiSplit, begins as a corrector",
            **three_modes("Transformer"),
        )
    ]
