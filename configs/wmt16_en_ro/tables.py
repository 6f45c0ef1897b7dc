"""The tables that wmt16_en_ro reproduces."""

from experiments.common_tables import full_size_pair, quality

OWN = {"quality": quality}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return full_size_pair(results, "EN-RO", "WMT16 EN-RO", "EN→X", "5-4.0", "5-6.0")
