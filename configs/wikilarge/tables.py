"""The tables that wikilarge reproduces."""

from experiments.common_tables import correctors, three_modes
from experiments.measures import Score, speed_up


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    columns = {
        "Wikilarge SARI": Score("SARI"),
        "Wikilarge BLEU": Score("BLEU"),
        "Wikilarge Speedup": speed_up,
    }
    return [correctors("ge2022/4", results.at(), columns, **three_modes("Transformer"))]
