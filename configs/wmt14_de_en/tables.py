"""The tables that wmt14_de_en reproduces."""

from experiments.common_tables import full_size_pair, quality

OWN = {"quality": quality}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return full_size_pair(results, "DE-EN", "WMT14 EN-DE", "X→EN", "3-1.0", "5-3.0")
