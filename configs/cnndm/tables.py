"""The tables that cnndm reproduces."""

from experiments.common_tables import summaries

TEACHERS = {"Teacher, BART": "teacher-beam4", "BART-base (beam = 5) without distillation": "undistilled-beam5"}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [summaries(results, teachers=TEACHERS)]
