"""The tables that wmt16_ro_en reproduces."""

from experiments.common_tables import full_size_pair, quality

OWN = {"quality": quality}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return full_size_pair(results, "RO-EN", "WMT16 EN-RO", "X→EN", "3-2.0", "5-3.0")
