"""The tables that cnndm reproduces."""

from configs.shared.tables import summaries


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [summaries(results)]
